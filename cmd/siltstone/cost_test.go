package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// metricsPage serves testdata/cost.prom, two hours after its agent started, and
// again what change makes of it.
func metricsPage(t *testing.T, change func(page string) string) (url string) {
	t.Helper()
	page, err := os.ReadFile("testdata/cost.prom")
	if err != nil {
		t.Fatal(err)
	}
	started := time.Unix(1_796_198_400, 0) // as the page says
	var looks atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := string(page)
		if looks.Add(1) > 1 {
			text = change(text)
		}
		w.Header().Set("Date", started.Add(2*time.Hour).UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

func costOf(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"cost"}, args...), nil, &out, &errs)
	return out.String(), errs.String(), code
}

func billOf(t *testing.T, args ...string) bill {
	t.Helper()
	out, errs, code := costOf(t, append(args, "--json")...)
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	var b bill
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// TestCost: 10,000 PUT, 200 LIST, 20,000 GET, 2,000,000 write units and
// 4,000,000 read units in two hours, for 4 GiB.
func TestCost(t *testing.T) {
	url := metricsPage(t, nil)
	b := billOf(t, "--metrics", url)
	const usd = 0.05 + 0.001 + 0.008 + 0 + 1.25 + 0.5
	if b.Seconds != 7200 || b.WrittenBytes != 4<<30 || !same(b.Total.PerHour, usd/2) || !same(*b.Total.PerGiB, usd/4) {
		t.Errorf("%+v, want %v in two hours and for 4 GiB", b, usd)
	}
	counts := map[string]float64{}
	for _, l := range b.Lines {
		counts[l.Price] = l.Count
		if !same(l.PerHour, l.Count/2) {
			t.Errorf("%s: %v an hour, of %v", l.Price, l.PerHour, l.Count)
		}
	}
	want := map[string]float64{"s3_put": 10_000, "s3_list": 200, "s3_get": 20_000, "s3_delete": 500, "dynamodb_write": 2e6, "dynamodb_read": 4e6}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
}

// TestCostText: the same, for people.
func TestCostText(t *testing.T) {
	out, errs, code := costOf(t, "--metrics", metricsPage(t, nil))
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, line := range []string{
		"S3 requests that write (PUT, COPY, POST)  10,000     5,000      0.025000    0.012500",
		"DynamoDB write units                      2,000,000  1,000,000  0.625000    0.312500",
		"total                                                           0.904500    0.452250",
		"in 2h0m0s, with 4.0 GiB of records written; list prices of us-east-1, 2026-12-02",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
}

// TestCostOfASample: only what came between the two looks counts, and nothing
// that was written makes no price per GiB.
func TestCostOfASample(t *testing.T) {
	b := billOf(t, "--sample", "1ns", "--metrics", metricsPage(t, func(page string) string {
		return strings.NewReplacer(`"put"} 10000`, `"put"} 10003`, "write_units_total 2e+06", "write_units_total 2000007.5").Replace(page)
	}))
	for _, l := range b.Lines {
		if want := map[string]float64{"s3_put": 3, "dynamodb_write": 7.5}[l.Price]; l.Count != want {
			t.Errorf("%s: %v, want %v", l.Price, l.Count, want)
		}
	}
	if b.WrittenBytes != 0 || b.Total.PerGiB != nil || b.Total.PerHour <= 0 {
		t.Errorf("%+v", b)
	}
}

func TestCostErrors(t *testing.T) {
	without := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			page, _ := os.ReadFile("testdata/cost.prom")
			for line := range strings.Lines(string(page)) {
				if !strings.Contains(line, name) {
					_, _ = w.Write([]byte(line))
				}
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	restarted := func(page string) string { return strings.ReplaceAll(page, "1.7961984e+09", "1.7961985e+09") }
	newer := func(page string) string { return strings.ReplaceAll(page, `"list"`, `"select"`) }
	for _, tt := range []struct{ name, url, says string }{
		{"nobody", "http://127.0.0.1:1/metrics", "name their URL with --metrics"},
		{"dev", without("siltstone_bucket"), "there is no siltstone_bucket_requests_total"},
		{"no coordinator", without("write_units"), "there is no siltstone_coordinator_write_units_total"},
		{"started again", metricsPage(t, restarted), "started again meanwhile"},
		{"another kind", metricsPage(t, newer), `kind "select"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs, code := costOf(t, "--metrics", tt.url, "--sample", "1ns")
			if code != exitError || !strings.Contains(errs, tt.says) {
				t.Errorf("code %d, %q; want %q", code, errs, tt.says)
			}
		})
	}
}

// TestListPrices: the table has a price for all that is counted, a source for
// each, and the figures of the date that it bears.
func TestListPrices(t *testing.T) {
	table, err := loadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, table.AsOf); err != nil {
		t.Error(err)
	}
	want := map[string]float64{ // dollars for one
		"s3_put": 5e-6, "s3_list": 5e-6, "s3_get": 4e-7, "s3_delete": 0, "s3_storage": 0.023,
		"dynamodb_write": 6.25e-7, "dynamodb_read": 1.25e-7, "dynamodb_storage": 0.25,
		"lambda_request": 2e-7, "lambda_duration": 0.0000133334, "zone_transfer": 0.01,
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(table.Prices))); diff != "" {
		t.Fatal(diff)
	}
	for name, usd := range want {
		if p := table.Prices[name]; !same(p.each(), usd) || !strings.HasPrefix(p.Source, "https://") {
			t.Errorf("%s: %+v, want %v each", name, p, usd)
		}
	}
	for _, name := range pricedUsage {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is counted and has no price", name)
		}
	}
}

func TestOwnPrices(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "prices.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := file(`{"as_of": "2027-01-01", "region": "eu-central-1", "prices": {"s3_put": {"usd": 0.0054}, "dynamodb_write": {"usd": 3, "per": 1000}}}`)
	b := billOf(t, "--metrics", metricsPage(t, nil), "--prices", own)
	const usd = 0.054 + 0.001 + 0.008 + 6000 + 0.5
	if b.PricesAsOf != "2027-01-01" || b.Region != "eu-central-1" || !same(b.Total.PerHour, usd/2) {
		t.Errorf("%+v, want %v in two hours", b, usd)
	}
	for _, tt := range []struct{ text, says string }{
		{`{"region": "r", "prices": {}}`, "as_of"},
		{`{"as_of": "d", "region": "r", "prices": {"s3_putt": {"usd": 1}}}`, `no price "s3_putt": the names are dynamodb_read,`},
		{`{"as_of": "d", "region": "r", "prices": {"s3_put": {"usd": -1}}}`, `price "s3_put"`},
		{`{"as_of": "d", "region": "r", "prices": {"s3_put": {"per": 10}}}`, `price "s3_put"`},
		{`{"as_of": "d", "region": "r", "prices": {"s3_put": {"usd": 1, "per": 0}}}`, `price "s3_put"`},
		{`{"as_of": "d", "region": "r", "prices": {"s3_put": {"eur": 1}}}`, `unknown field "eur"`},
		{`{"as_of": "d", "region": "r", "price": {}}`, `unknown field "price"`},
		{`no`, "invalid character"},
	} {
		if _, errs, code := costOf(t, "--prices", file(tt.text)); code != exitError || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: code %d, %q; want %q", tt.text, code, errs, tt.says)
		}
	}
}
