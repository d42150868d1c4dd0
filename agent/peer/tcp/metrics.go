package tcp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone/agent/peer"
)

// metrics of a transport. Labels are closed sets: lanes, the two directions,
// and the labels of class.
type metrics struct {
	sent, received    [peer.Lanes]prometheus.Counter
	full              [peer.Lanes]prometheus.Counter
	queued            [peer.Lanes]prometheus.Gauge
	dialled, accepted prometheus.Gauge
	failures          *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "siltstone", Subsystem: "peer", Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help, label string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "siltstone", Subsystem: "peer", Name: name, Help: help}, []string{label})
	}
	sent := counter("sent_bytes_total", "Bytes sent to other agents, handshakes and signs of life included.", "lane")
	received := counter("received_bytes_total", "Bytes received from other agents, handshakes and signs of life included.", "lane")
	full := counter("full_total", "Messages that were not sent because too much waited.", "lane")
	queued := gauge("queued_bytes", "Bytes that wait to be sent to other agents.", "lane")
	connections := gauge("connections", "Connections with other agents, by who made them.", "direction")
	m := &metrics{
		dialled:  connections.WithLabelValues("dialled"),
		accepted: connections.WithLabelValues("accepted"),
		failures: counter("failures_total", "Connections that were not made or not taken, by reason.", "reason"),
	}
	for lane := range peer.Lane(peer.Lanes) {
		m.sent[lane] = sent.WithLabelValues(lane.String())
		m.received[lane] = received.WithLabelValues(lane.String())
		m.full[lane] = full.WithLabelValues(lane.String())
		m.queued[lane] = queued.WithLabelValues(lane.String())
	}
	if r != nil {
		r.MustRegister(sent, received, full, queued, connections, m.failures)
	}
	return m
}
