package kafka

import "github.com/prometheus/client_golang/prometheus"

// metrics of a server. Labels are closed sets: names of APIs, of Kafka's
// errors, and the reasons of closeReason.
type metrics struct {
	connections prometheus.Gauge
	refused     prometheus.Counter
	closed      *prometheus.CounterVec
	received    prometheus.Counter
	sent        prometheus.Counter
	held        prometheus.Gauge
	seconds     *prometheus.HistogramVec
	errors      *prometheus.CounterVec
	sessions    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "siltstone_kafka_connections",
			Help: "Connections that are open.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "siltstone_kafka_connections_refused_total",
			Help: "Connections closed at once because too many were open.",
		}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "siltstone_kafka_connections_closed_total",
			Help: "Connections closed, by reason.",
		}, []string{"reason"}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "siltstone_kafka_received_bytes_total",
			Help: "Bytes of requests.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "siltstone_kafka_sent_bytes_total",
			Help: "Bytes of answers.",
		}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "siltstone_kafka_request_memory_bytes",
			Help: "Memory that requests hold, of the bound for it.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "siltstone_kafka_request_seconds",
			Help:    "Time from a request's last byte to its answer, waiting included, by API.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"api"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "siltstone_kafka_errors_total",
			Help: "Errors in answers (one per partition or topic), by Kafka's name for them.",
		}, []string{"error"}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "siltstone_kafka_fetch_sessions",
			Help: "Fetch sessions that are kept.",
		}),
	}
	if r != nil {
		r.MustRegister(m.connections, m.refused, m.closed, m.received, m.sent, m.held, m.seconds, m.errors, m.sessions)
	}
	return m
}
