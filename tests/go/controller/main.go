// A program of the kind that sites write: it watches Servers and says in a condition that it has seen them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type auditor struct{ client.Client }

func newServer() *unstructured.Unstructured {
	server := &unstructured.Unstructured{}
	server.SetGroupVersionKind(schema.GroupVersionKind{Group: "metal.ironcore.dev", Version: "v1alpha1", Kind: "Server"})
	return server
}

// Reconcile writes the generation that it saw into a condition.
func (a auditor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := newServer()
	if err := a.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	base := found.DeepCopy()
	condition := map[string]any{
		"type": "Audited", "status": "True", "reason": "Seen", "message": fmt.Sprintf("generation %d", found.GetGeneration()),
		"lastTransitionTime": found.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z"),
	}
	if err := unstructured.SetNestedSlice(found.Object, []any{condition}, "status", "conditions"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, a.Status().Patch(ctx, found, client.MergeFrom(base))
}

func main() {
	flag.Parse() // -kubeconfig; else KUBECONFIG
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err == nil {
		err = ctrl.NewControllerManagedBy(manager).Named("auditor").For(newServer()).Complete(auditor{manager.GetClient()})
	}
	if err == nil {
		err = manager.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
