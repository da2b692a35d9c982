package telemetry_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"
	"go.yaml.in/yaml/v3"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// program finds a program of Prometheus, or says how to get it.
func program(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: on Debian `apt-get install prometheus`, elsewhere https://prometheus.io/download", name)
	}
	return path
}

// TestRules lets promtool check the rules, and see each alert fire.
func TestRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), program(t, "promtool"), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// server is a Prometheus that scrapes a program and evaluates the rules.
type server struct{ url string }

// start starts it on a free port.
func start(t *testing.T, target string) *server {
	t.Helper()
	rules, dir := rig.Must(filepath.Abs("rules.yml"))(t), t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs: [{job_name: shop, static_configs: [{targets: [%q]}]}]\n", rules, target)
	rig.Is(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	listener := rig.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	rig.Is(t, listener.Close())
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), program(t, "prometheus"), "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	cmd.Stderr = &said
	rig.Is(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	s := &server{"http://" + address}
	rig.Await(t, "Prometheus is ready", func() bool {
		resp, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return s
}

// ask is an answer of the server's interface, as it is below "data".
func (s *server) ask(t *testing.T, path string, params url.Values, into any) {
	t.Helper()
	req := rig.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path+"?"+params.Encode(), nil))(t)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v: %s %s", params, err, answer.Status, answer.Error)
	}
}

// series are the labels of all series that an expression has.
func (s *server) series(t *testing.T, expression string) (all []map[string]string) {
	t.Helper()
	var found struct {
		Result []struct{ Metric map[string]string }
	}
	s.ask(t, "/api/v1/query", url.Values{"query": {expression}}, &found)
	for _, r := range found.Result {
		all = append(all, r.Metric)
	}
	return all
}

// grouping has the labels by which an expression sums up.
var grouping = regexp.MustCompile(`by \(([^)]*)\)`)

// complete reports whether there are series with all labels that an expression sums up by,
// but that of buckets, which are summed up in turn.
func complete(expression string, series []map[string]string) bool {
	if len(series) == 0 {
		return false
	}
	for _, by := range grouping.FindAllStringSubmatch(expression, -1) {
		for _, label := range strings.Split(by[1], ", ") {
			if label != "le" && !slices.ContainsFunc(series, func(s map[string]string) bool { return s[label] != "" }) {
				return false
			}
		}
	}
	return true
}

// expressions are those of the dashboard, as Grafana sends them for all tables, and those
// of the rules without the bound from which they fire.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	rig.Is(t, json.Unmarshal(rig.Must(os.ReadFile("dashboard.json"))(t), &dashboard))
	variables := strings.NewReplacer("$table", ".*", "$__rate_interval", "1m")
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for i, target := range p.Targets {
			all[fmt.Sprintf("dashboard, %s, %d", p.Title, i+1)] = variables.Replace(target.Expr)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	rig.Is(t, yaml.Unmarshal(rig.Must(os.ReadFile("rules.yml"))(t), &rules))
	for _, r := range rules.Groups[0].Rules {
		bound := strings.LastIndex(r.Expr, " > ")
		all["rules, "+r.Alert] = r.Expr[:bound]
	}
	return all
}

// TestEveryExpressionAnswers lets a real Prometheus scrape a program to which everything
// happens, and asks it what the dashboard and the rules ask.
func TestEveryExpressionAnswers(t *testing.T) {
	registry := prometheus.NewRegistry()
	reader := rig.Must(exporter.New(exporter.WithRegisterer(registry)))(t)
	cfg := repo.TableConfig{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), TracerProvider: noop.NewTracerProvider()}
	shop := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer shop.Close()
	target := strings.TrimPrefix(shop.URL, "http://")

	everything := func() {
		open(t, cfg, func(metric string) bool {
			families, err := registry.Gather()
			rig.Is(t, err)
			for _, f := range families {
				if strings.HasPrefix(f.GetName(), strings.ReplaceAll(metric, ".", "_")) {
					return true
				}
			}
			return false
		})
	}
	everything()
	s := start(t, target)
	for name, expression := range expressions(t) {
		t.Run(name, func(t *testing.T) {
			rig.Await(t, expression+" has an answer", func() bool { return complete(expression, s.series(t, expression)) })
		})
	}
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	rig.Await(t, "the rules are evaluated", func() bool {
		s.ask(t, "/api/v1/rules", nil, &found)
		evaluated := 0
		for _, r := range found.Groups[0].Rules {
			if r.Health == "err" {
				t.Fatalf("%s: %s", r.Name, r.LastError)
			}
			if r.Health == "ok" {
				evaluated++
			}
		}
		return evaluated == len(found.Groups[0].Rules)
	})
	// A scrape may take no longer than the interval: on a busy machine one can fail.
	rig.Await(t, "the program is scraped", func() bool {
		var alive struct{ ActiveTargets []struct{ Health string } }
		s.ask(t, "/api/v1/targets", nil, &alive)
		return len(alive.ActiveTargets) == 1 && alive.ActiveTargets[0].Health == "up"
	})
}
