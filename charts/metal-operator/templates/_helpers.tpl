{{- define "metal.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "metal.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "metal.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "metal.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "metal.selector" -}}
app.kubernetes.io/name: {{ include "metal.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "metal.labels" -}}
{{ include "metal.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Name, labels and annotations: (list context name annotations [labels]) */}}
{{- define "metal.meta" -}}
{{- $top := index . 0 -}}
{{- $annotations := merge (dict) (default (dict) (index . 2)) $top.Values.commonAnnotations -}}
name: {{ index . 1 }}
labels: {{- include "metal.labels" $top | nindent 2 }}
{{- if gt (len .) 3 }}
{{- with index . 3 }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "metal.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "metal.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.create is false: name the existing account in serviceAccount.name" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "metal.image" -}}
{{- $repository := required "image.repository is not set: build the image with `make image`, push it, and name it here" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end }}

{{- define "metal.group" -}}
{{- default "metal.ironcore.dev" .Values.config.apiGroup -}}
{{- end }}

{{- define "metal.bootGroup" -}}
{{- default "boot.ironcore.dev" .Values.config.bootGroup -}}
{{- end }}

{{- define "metal.prefixes" -}}
{{- if and .Values.macPrefixes .Values.macPrefixesSecret -}}
{{- fail "macPrefixes and macPrefixesSecret are both set: keep one" -}}
{{- end -}}
{{- if .Values.macPrefixesSecret -}}
{{- .Values.macPrefixesSecret -}}
{{- else if .Values.macPrefixes -}}
{{- include "metal.fullname" . }}-mac-prefixes
{{- end -}}
{{- end }}

{{- define "metal.address" -}}
{{- if contains ":" .Values.listenAddress -}}[{{ .Values.listenAddress }}]{{- else -}}{{ .Values.listenAddress }}{{- end -}}
{{- end }}

{{/* The configuration file: the values, and what only the chart can know. */}}
{{- define "metal.config" -}}
{{- $_ := required "config.advertise.boot is not set: machines must be told how they reach the boot server, such as http://192.0.2.1:8082" .Values.config.advertise.boot -}}
{{- $_ := required "config.advertise.registry is not set: machines must be told how they reach the registry, such as http://192.0.2.1:10000" .Values.config.advertise.registry -}}
{{- $address := include "metal.address" . -}}
{{- $listen := dict "boot" (printf "%s:8082" $address) "registry" (printf "%s:10000" $address) "metrics" (printf "%s:8080" $address) -}}
{{- if .Values.config.advertise.events -}}
{{- $_ := set $listen "events" (printf "%s:10001" $address) -}}
{{- end -}}
{{- $ours := dict "namespace" .Release.Namespace "listen" $listen -}}
{{- if include "metal.prefixes" . -}}
{{- $_ := set $ours "macPrefixesFile" "/etc/metal/prefixes/mac-prefixes.yaml" -}}
{{- end -}}
{{- if .Values.dnsRecordTemplate -}}
{{- $_ := set $ours "dnsRecordTemplate" "/etc/metal/config/dns-record-template.yaml" -}}
{{- end -}}
{{- if .Values.bmcCA -}}
{{- $_ := set $ours "bmc" (dict "caFile" "/etc/metal/config/bmc-ca.pem") -}}
{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $ours) -}}
{{- end }}

{{- define "metal.prefixFile" -}}
{{- toYaml (dict "macPrefixes" .Values.macPrefixes) -}}
{{- end }}

{{/* What follows the name in a CRD's metadata. */}}
{{- define "metal.crdMeta" -}}
{{- $annotations := merge (dict) .Values.crds.annotations .Values.commonAnnotations -}}
{{- if .Values.crds.keep -}}
{{- $_ := set $annotations "helm.sh/resource-policy" "keep" -}}
{{- end -}}
labels: {{- include "metal.labels" . | nindent 2 }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
