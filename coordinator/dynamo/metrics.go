package dynamo

import "github.com/prometheus/client_golang/prometheus"

// metrics are the bill: each request is counted where it is made.
type metrics struct {
	requests   *prometheus.CounterVec // by kind
	failures   *prometheus.CounterVec // by why
	writeUnits prometheus.Counter
	readUnits  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "siltstone", Subsystem: "coordinator", Name: name, Help: help}
	}
	m := &metrics{
		requests:   prometheus.NewCounterVec(opts("requests_total", "Requests to DynamoDB, by kind."), []string{"kind"}),
		failures:   prometheus.NewCounterVec(opts("failures_total", "Requests to DynamoDB that failed, by why. A condition that does not hold is no failure."), []string{"why"}),
		writeUnits: prometheus.NewCounter(opts("write_units_total", "Write request units of DynamoDB.")),
		readUnits:  prometheus.NewCounter(opts("read_units_total", "Read request units of DynamoDB.")),
	}
	for _, kind := range kinds {
		m.requests.WithLabelValues(kind)
	}
	for _, why := range []result{throttled, unauthorized, refused, unreached, lost} {
		m.failures.WithLabelValues(string(why))
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.failures, m.writeUnits, m.readUnits)
	}
	return m
}
