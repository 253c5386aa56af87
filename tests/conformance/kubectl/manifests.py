"""What the script pipes into kubectl."""

SERVER = """\
apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata:
  name: srv-RUN-a
  labels: {run: RUN, rack: r1}
spec:
  systemUUID: 38947555-7742-3448-3784-823347823834
  power: "Off"
  bmcRef: {name: bmc-RUN}
"""
SERVERS = f"""\
{SERVER}---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata:
  name: srv-RUN-b
  labels: {{run: RUN, rack: r2}}
spec:
  systemUUID: 12345678-7742-3448-3784-823347823834
  taints:
  - {{key: example.com/burn-in, effect: NoBind}}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata:
  name: srv-RUN-c
  labels: {{run: RUN}}
spec:
  systemUUID: 00345678-7742-3448-3784-823347823834
  bmc:
    protocol: {{name: Redfish, port: 443}}
    address: 192.0.2.13
    bmcSecretRef: {{name: secret-RUN}}
"""
BMC = """\
apiVersion: metal.ironcore.dev/v1alpha1
kind: BMC
metadata:
  name: bmc-RUN
  labels: {run: RUN}
spec:
  access: {ip: 192.0.2.12, macAddress: "a0:b1:c2:00:00:02"}
  bmcSecretRef: {name: secret-RUN}
  protocol: {name: Redfish, port: 443}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: BMCSecret
metadata:
  name: secret-RUN
  labels: {run: RUN}
stringData: {username: oobadmin, password: change-me}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Endpoint
metadata:
  name: endpoint-RUN
  labels: {run: RUN}
spec: {macAddress: "a0:b1:c2:00:00:01", ip: 192.0.2.11}
"""
CLAIM = """\
apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: worker-1
spec:
  power: "On"
  image: registry.example.com/os/demo:1.0
  serverSelector: {matchLabels: {rack: r1}}
  tolerations:
  - {key: example.com/burn-in, operator: Exists}
"""
IPXE = """\
apiVersion: boot.ironcore.dev/v1alpha1
kind: IPXEBootConfig
metadata: {name: pxe}
spec:
  systemUUID: 38947555-7742-3448-3784-823347823834
  systemIPs: [192.0.2.113]
  kernelURL: http://192.0.2.1:8082/image/kernel
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: demo}
data:
  b: "2"
  a: |
    several
    lines
"""
EVENT = """\
apiVersion: v1
kind: Event
metadata: {name: worker-1.17}
involvedObject: {apiVersion: metal.ironcore.dev/v1alpha1, kind: ServerClaim, name: worker-1, namespace: lab-RUN}
reason: Bound
message: Server srv-RUN-a is bound.
type: Normal
count: 3
source: {component: metal-operator}
firstTimestamp: "2026-01-02T03:04:05Z"
lastTimestamp: "2026-01-02T03:04:05Z"
"""
LEASE = """\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: leader}
spec: {holderIdentity: one, leaseDurationSeconds: 15, renewTime: "2026-01-02T03:04:05.000000Z"}
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: from-file}
rules:
- apiGroups: [metal.ironcore.dev]
  resources: [serverclaims]
  verbs: [get]
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: racks.RUN.example.org
spec:
  group: RUN.example.org
  scope: Namespaced
  names: {kind: Rack, plural: racks, singular: rack, shortNames: [rk]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: A rack full of servers.
        type: object
        properties:
          spec:
            type: object
            required: [units]
            properties:
              units: {type: integer, minimum: 1, description: Height in units.}
    additionalPrinterColumns:
    - {name: Units, type: integer, jsonPath: .spec.units}
"""
RACK = """\
apiVersion: RUN.example.org/v1
kind: Rack
metadata: {name: left}
spec: {units: 42}
"""
