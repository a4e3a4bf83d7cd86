// Command check lints the Helm chart, renders it, and reads each object as an API server does: by its kind, and no field that is not known. It
// prints the objects: go run . ../chart [NAME=VALUE…] >../refreshd.yaml. It is a module of its own, so that the types of Kubernetes are none
// of refreshd's libraries.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const header = `# refreshd on Kubernetes: kubectl apply -f refreshd.yaml
#
# It is the Helm chart beside this file, with the values that the chart has. Bring your own Redis, and its address in a secret:
#
#   kubectl create secret generic refreshd --from-literal=redis-url=redis://USER:PASSWORD@redis:6379 --from-literal=token=$(openssl rand -hex 16)
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "expected the folder of a chart, found none")
		os.Exit(2)
	}
	manifests, err := render(os.Args[1], strings.Join(os.Args[2:], ","))
	if err == nil {
		err = check(strings.NewReader(manifests))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(header + manifests)
}

// render lints a chart and fills in its templates.
func render(dir, set string) (string, error) {
	values, err := strvals.Parse(set)
	if err != nil {
		return "", err
	}
	for _, message := range lint.All(dir, values, "default", true).Messages {
		if message.Severity > support.InfoSev {
			return "", message
		}
	}
	chart, err := loader.Load(dir)
	if err != nil {
		return "", err
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "refreshd", Namespace: "default"}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if file := strings.TrimSpace(files[name]); file != "" {
			text.WriteString("---\n" + strings.TrimPrefix(file, "---\n") + "\n")
		}
	}
	return text.String(), err
}

// check reads all objects strictly, but for those of KEDA, whose types would cost a hundred modules.
func check(manifests io.Reader) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := io.ReadAll(manifests)
	if err != nil {
		return err
	}
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer func() { _ = documents.Close() }()
	document := make([]byte, len(text)+1)
	for count := 1; ; count++ {
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if bytes.Contains(document[:n], []byte("apiVersion: keda.sh/")) {
			continue
		}
		if _, kind, err := decoder.Decode(document[:n], nil, nil); err != nil {
			return fmt.Errorf("object %d, %v: %w", count, kind, err)
		}
	}
}
