package helm

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// objectsOf decodes manifests. Fields that Kubernetes does not know, and fields that occur twice,
// are errors.
func objectsOf(t *testing.T, name, manifests string) (all []runtime.Object) {
	t.Helper()
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for doc := range strings.SplitSeq(manifests, "\n---\n") {
		object, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, doc)
			continue
		}
		all = append(all, object)
	}
	return all
}

// A workload is an object that makes Kubernetes create pods.
type workload struct {
	name     string
	selector map[string]string
	pod      corev1.PodTemplateSpec
}

func workloadsOf(objects []runtime.Object) (all []workload) {
	for _, o := range objects {
		switch x := o.(type) {
		case *appsv1.DaemonSet:
			all = append(all, workload{x.Name, x.Spec.Selector.MatchLabels, x.Spec.Template})
		case *appsv1.Deployment:
			all = append(all, workload{x.Name, x.Spec.Selector.MatchLabels, x.Spec.Template})
		}
	}
	return all
}

// The manifests must have only fields of Kubernetes, and refer only to objects, ports and volumes
// that exist.
func TestKubernetesUnderstandsTheManifests(t *testing.T) {
	for _, name := range values {
		manifests, _, err := render(valuesOf(t, name))
		if err != nil {
			t.Fatal(err)
		}
		objects := objectsOf(t, name, manifests)
		configs, services := make(map[string]*corev1.ConfigMap), 0
		workloads := workloadsOf(objects)
		for _, o := range objects {
			switch x := o.(type) {
			case *corev1.ConfigMap:
				configs[x.Name] = x
			case *corev1.Service:
				services++
				checkService(t, x, workloads)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[name == "gateway"]; len(configs) != want || services != want || len(workloads) != want {
			t.Errorf("%s: %d configurations, %d services, %d workloads; want %d of each", name, len(configs), services, len(workloads), want)
		}
		for _, w := range workloads {
			if !labels.SelectorFromSet(w.selector).Matches(labels.Set(w.pod.Labels)) {
				t.Errorf("%s does not select its own pods", w.name)
			}
			checkPod(t, w, configs)
		}
	}
}

// checkService reports a service that leads to no pod, or to ports that the pods do not have.
func checkService(t *testing.T, s *corev1.Service, workloads []workload) {
	t.Helper()
	found := 0
	for _, w := range workloads {
		if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.pod.Labels)) {
			continue
		}
		found++
		for _, p := range s.Spec.Ports {
			if !hasPort(w.pod.Spec.Containers[0], p.TargetPort) {
				t.Errorf("%s: %s has no port %s", s.Name, w.name, p.TargetPort.String())
			}
		}
	}
	if found != 1 {
		t.Errorf("%s selects the pods of %d workloads", s.Name, found)
	}
}

func hasPort(c corev1.Container, port intstr.IntOrString) bool {
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return true
		}
	}
	return false
}

// checkPod reports volumes without their source, probes without their port, and rights that the
// Collector does not need.
func checkPod(t *testing.T, w workload, configs map[string]*corev1.ConfigMap) {
	t.Helper()
	c := w.pod.Spec.Containers[0]
	mounted := make(map[string]bool)
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = true
	}
	for _, v := range w.pod.Spec.Volumes {
		if v.ConfigMap != nil && (configs[v.ConfigMap.Name] == nil || configs[v.ConfigMap.Name].Data["collector.yaml"] == "") {
			t.Errorf("%s: no configuration %s", w.name, v.ConfigMap.Name)
		}
		if !mounted[v.Name] {
			t.Errorf("%s: volume %s is not mounted", w.name, v.Name)
		}
		delete(mounted, v.Name)
	}
	for name := range mounted {
		t.Errorf("%s: no volume %s", w.name, name)
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || !hasPort(c, p.HTTPGet.Port) {
			t.Errorf("%s: a probe asks a port that is not open", w.name)
		}
	}
	s := c.SecurityContext
	if s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s may do more than read files: %v", w.name, s)
	}
	if *w.pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%s gets a token for the API server", w.name)
	}
}
