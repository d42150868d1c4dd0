package agent

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// metrics are the agent's counters; their names are siltstone_agent_….
type metrics struct {
	appendedBytes prometheus.Counter
	repeats       prometheus.Counter
	flushes       prometheus.Counter
	flushedBytes  prometheus.Counter
	flushSeconds  prometheus.Histogram
	voidEntries   prometheus.Counter
	unclean       prometheus.Counter
	shortISR      prometheus.Gauge
	checkpoints   prometheus.Counter
	ledgerAppends *prometheus.HistogramVec
}

// Kinds of ledgers, as metrics tell them apart.
const (
	clusterKind = "cluster"
	shardKind   = "shard"
	groupKind   = "group"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "siltstone", Subsystem: "agent", Name: name, Help: help})
	}
	m := &metrics{
		appendedBytes: counter("appended_bytes_total", "Record batches taken from producers."),
		repeats:       counter("repeated_batches_total", "Batches of idempotent producers that the log had already, and did not take again."),
		flushes:       counter("flushes_total", "Segments uploaded."),
		flushedBytes:  counter("flushed_bytes_total", "Segments uploaded, by size."),
		voidEntries:   counter("void_entries_total", "Ledger entries that broke the rules. No correct writer makes one."),
		unclean:       counter("unclean_takeovers_total", "Shards taken over after all that held their unflushed records were gone: what replication alone had made safe is lost."),
		shortISR: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "siltstone", Subsystem: "agent", Name: "under_replicated_shards",
			Help: "Shards that this agent leads and fewer agents hold than siltstone.replicas says: those it holds alone acknowledge acks=all by a flush.",
		}),
		checkpoints: counter("checkpoints_total", "Folds stored."),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "siltstone", Subsystem: "agent", Name: "flush_seconds",
			Help: "From the cut of a segment to the end of its upload.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		ledgerAppends: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "siltstone", Subsystem: "agent", Name: "ledger_append_seconds",
			Help: "From an entry's proposal to its outcome, by the kind of ledger.", Buckets: prometheus.ExponentialBuckets(0.0005, 1.5, 24),
		}, []string{"kind"}),
	}
	if reg != nil {
		reg.MustRegister(m.appendedBytes, m.repeats, m.flushes, m.flushedBytes, m.voidEntries, m.unclean, m.shortISR, m.checkpoints, m.flushSeconds, m.ledgerAppends)
	}
	return m
}

func (m *metrics) appended(bytes int) { m.appendedBytes.Add(float64(bytes)) }

func (m *metrics) repeated() { m.repeats.Inc() }

func (m *metrics) flushed(bytes int64, took time.Duration) {
	m.flushes.Inc()
	m.flushedBytes.Add(float64(bytes))
	m.flushSeconds.Observe(took.Seconds())
}

func (m *metrics) checkpointed() { m.checkpoints.Inc() }

// append is the ledger's, timed.
func (a *Agent) append(ctx context.Context, kind string, p ledger.Proposal) (ledger.Outcome, error) {
	start := time.Now()
	out, err := a.ledgers.Append(ctx, p)
	a.metrics.ledgerAppends.WithLabelValues(kind).Observe(time.Since(start).Seconds())
	return out, err
}

func (m *metrics) void() { m.voidEntries.Inc() }
