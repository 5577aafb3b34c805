// Says what the Prometheus operator makes of monitors: the configuration that its Prometheus gets.
//
// Stdin: a line of JSON for each question, a Prometheus and its ServiceMonitors, PodMonitors and ScrapeConfigs.
// Stdout: a line of JSON for each, in their order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	prompkg "github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	"k8s.io/client-go/kubernetes/fake"
)

type question struct {
	Prometheus      *monitoringv1.Prometheus           `json:"prometheus"`
	ServiceMonitors []*monitoringv1.ServiceMonitor     `json:"serviceMonitors"`
	PodMonitors     []*monitoringv1.PodMonitor         `json:"podMonitors"`
	ScrapeConfigs   []*monitoringv1alpha1.ScrapeConfig `json:"scrapeConfigs"`
}

type answer struct {
	// YAML.
	Config string `json:"config"`
	Error  string `json:"error"`
}

func generate(q question) (string, error) {
	generator, err := prompkg.NewConfigGenerator(nil, q.Prometheus, prompkg.WithEndpointSliceSupport())
	if err != nil {
		return "", err
	}
	serviceMonitors := map[string]*monitoringv1.ServiceMonitor{}
	for _, each := range q.ServiceMonitors {
		serviceMonitors[each.Namespace+"/"+each.Name] = each
	}
	podMonitors := map[string]*monitoringv1.PodMonitor{}
	for _, each := range q.PodMonitors {
		podMonitors[each.Namespace+"/"+each.Name] = each
	}
	scrapeConfigs := map[string]*monitoringv1alpha1.ScrapeConfig{}
	for _, each := range q.ScrapeConfigs {
		scrapeConfigs[each.Namespace+"/"+each.Name] = each
	}
	client := fake.NewSimpleClientset().CoreV1()
	config, err := generator.GenerateServerConfiguration(
		q.Prometheus, serviceMonitors, podMonitors, nil, scrapeConfigs, assets.NewStoreBuilder(client, client), nil, nil, nil, nil)
	return string(config), err
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q question
		var a answer
		err := json.Unmarshal(lines.Bytes(), &q)
		if err == nil {
			a.Config, err = generate(q)
		}
		if err != nil {
			a.Error = fmt.Sprint(err)
		}
		if err := out.Encode(a); err != nil {
			panic(err)
		}
	}
}
