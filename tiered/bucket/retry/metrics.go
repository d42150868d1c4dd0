package retry

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	retries           *prometheus.CounterVec
	hedges, hedgesWon prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, gates ...*gate) *metrics {
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "siltstone", Subsystem: "bucket", Name: name, Help: help}
	}
	m := &metrics{
		retries:   prometheus.NewCounterVec(opts("retries_total", "Calls of the bucket that were tried again, by kind."), []string{"kind"}),
		hedges:    prometheus.NewCounter(opts("hedges_total", "Reads that were slow and sent a second time.")),
		hedgesWon: prometheus.NewCounter(opts("hedges_won_total", "Reads whose second request was answered first.")),
	}
	if reg != nil {
		reg.MustRegister(m.retries, m.hedges, m.hedgesWon)
	}
	for _, g := range gates {
		m.retries.WithLabelValues(g.kind) // shows as 0 from the start
		if reg != nil {
			reg.MustRegister(g.gauge())
		}
	}
	return m
}

func (g *gate) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "siltstone", Subsystem: "bucket", Name: "refusing",
		Help:        "1 while the store refuses all requests of a kind, and is only probed.",
		ConstLabels: prometheus.Labels{"kind": g.kind},
	}, func() float64 {
		if g.isShut() {
			return 1
		}
		return 0
	})
}
