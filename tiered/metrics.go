package tiered

import "github.com/prometheus/client_golang/prometheus"

// getKind is what a request to the bucket reads.
type getKind string

const (
	getObject getKind = "object" // a whole one, or the rest of it
	getFooter getKind = "footer"
	getChunk  getKind = "chunk"
)

// Outcomes of a request.
const (
	resultOK    = "ok"
	resultError = "error"
)

// metrics count what the cache does, and each request, for it is billed.
type metrics struct {
	hits, misses, evictions, ahead prometheus.Counter
	gets                           *prometheus.CounterVec
	bytes                          *prometheus.CounterVec
	cached                         prometheus.GaugeFunc
}

func newMetrics(cachedBytes func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "siltstone_tiered_" + name, Help: help})
	}
	m := &metrics{
		hits:      counter("cache_hits_total", "Objects, and chunks of large ones, that a read found in the cache."),
		misses:    counter("cache_misses_total", "Objects, and chunks of large ones, that a read waited for."),
		evictions: counter("cache_evictions_total", "Objects, indexes and chunks given up for others."),
		ahead:     counter("ahead_loads_total", "Loads that were started before anybody waited for them."),
		gets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "siltstone_tiered_gets_total", Help: "GET requests to the bucket, by what they read and how they ended.",
		}, []string{"kind", "result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "siltstone_tiered_get_bytes_total", Help: "Bytes read from the bucket.",
		}, []string{"kind"}),
		cached: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "siltstone_tiered_cache_bytes", Help: "Memory that the cache holds.",
		}, cachedBytes),
	}
	for _, kind := range []getKind{getObject, getFooter, getChunk} { // they show as 0 from the start
		m.bytes.WithLabelValues(string(kind))
		m.gets.WithLabelValues(string(kind), resultOK)
		m.gets.WithLabelValues(string(kind), resultError)
	}
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.hits, m.misses, m.evictions, m.ahead, m.gets, m.bytes, m.cached}
}

func (m *metrics) got(kind getKind, sizeBytes int, err error) {
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.gets.WithLabelValues(string(kind), result).Inc()
	m.bytes.WithLabelValues(string(kind)).Add(float64(sizeBytes))
}

// cachedBytes is for the gauge.
func (r *Reader) cachedBytes() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return float64(r.cache.used)
}
