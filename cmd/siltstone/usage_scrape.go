package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics that an agent counts what is paid for with.
const (
	metricRequests   = "siltstone_bucket_requests_total"
	metricWriteUnits = "siltstone_coordinator_write_units_total"
	metricReadUnits  = "siltstone_coordinator_read_units_total"
	metricWritten    = "siltstone_agent_appended_bytes_total"
	metricStarted    = "process_start_time_seconds"
)

// priceOfKind is the price of each kind of request to the bucket.
var priceOfKind = map[string]string{"put": "s3_put", "list": "s3_list", "get": "s3_get", "delete": "s3_delete"}

// pricedUsage are the prices of all that is counted, in the order of a bill.
var pricedUsage = []string{"s3_put", "s3_list", "s3_get", "s3_delete", "dynamodb_write", "dynamodb_read"}

const (
	scrapeTimeout  = 10 * time.Second
	maxScrapeBytes = 16 << 20
)

// usage is what an agent has used since it started.
type usage struct {
	started, at time.Time          // by the agent's clock
	counts      map[string]float64 // by the name of the price
	written     float64            // bytes of record batches
}

// since is what was used after an earlier look.
func (u usage) since(before usage) usage {
	counts := maps.Clone(u.counts)
	for name, count := range before.counts {
		counts[name] -= count
	}
	return usage{u.started, u.at, counts, u.written - before.written}
}

// scrape reads an agent's page of metrics.
func scrape(ctx context.Context, url string) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usage{}, usagef("--metrics: %w", err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return usage{}, fmt.Errorf("no agent's metrics: name their URL with --metrics (%w)", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return usage{}, fmt.Errorf("%s answers %s: name the URL of an agent's metrics with --metrics", url, reply.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	page, err := parser.TextToMetricFamilies(io.LimitReader(reply.Body, maxScrapeBytes))
	if err != nil {
		return usage{}, fmt.Errorf("%s is no page of metrics: %w", url, err)
	}
	at, err := http.ParseTime(reply.Header.Get("Date"))
	if err != nil {
		at = time.Now()
	}
	u, err := readUsage(page)
	if err != nil {
		return usage{}, fmt.Errorf("%s: %w", url, err)
	}
	u.at = at
	return u, nil
}

func readUsage(page map[string]*dto.MetricFamily) (usage, error) {
	for _, name := range []string{metricRequests, metricWriteUnits, metricReadUnits, metricWritten, metricStarted} {
		if page[name] == nil {
			return usage{}, fmt.Errorf("there is no %s: only an agent with its stores in the cloud counts what they cost (dev has a folder)", name)
		}
	}
	started := sum(page[metricStarted])
	u := usage{
		started: time.UnixMilli(int64(started * 1000)),
		written: sum(page[metricWritten]),
		counts:  map[string]float64{"dynamodb_write": sum(page[metricWriteUnits]), "dynamodb_read": sum(page[metricReadUnits])},
	}
	for _, m := range page[metricRequests].GetMetric() {
		kind := ""
		for _, l := range m.GetLabel() {
			if l.GetName() == "kind" {
				kind = l.GetValue()
			}
		}
		name, known := priceOfKind[kind]
		if !known {
			return usage{}, fmt.Errorf("requests of the kind %q have no price here: is the agent of a newer version?", kind)
		}
		u.counts[name] += m.GetCounter().GetValue()
	}
	return u, nil
}

// sum is a family's value, over all of its labels.
func sum(f *dto.MetricFamily) float64 {
	var total float64
	for _, m := range f.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return total
}
