package agent

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// TestMetricsCount: each metric moves when what it counts happens.
func TestMetricsCount(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		metrics := prometheus.NewRegistry()
		r.adjust = func(o *Options) { o.CheckpointEntries, o.Metrics = 3, metrics }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "x")); err != nil { // after Lead and Open the third entry
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, want := range map[string]float64{
			"siltstone_agent_appended_bytes_total": float64(len(aBatch(t, 1, 1, "x"))),
			"siltstone_agent_flushes_total":        1,
			"siltstone_agent_flush_seconds":        1,
			"siltstone_agent_checkpoints_total":    1,
			"siltstone_agent_void_entries_total":   0,

			"siltstone_agent_ledger_append_seconds cluster": 1,
			"siltstone_agent_ledger_append_seconds shard":   shard.Count + 2, // a Lead each, an Open, a Segment
			"siltstone_agent_ledger_append_seconds group":   group.Count,     // a Lead each
		} {
			if n, there := got[name]; !there || n != want {
				t.Errorf("%s is %v, want %v", name, n, want)
			}
		}
		if got["siltstone_agent_flushed_bytes_total"] <= got["siltstone_agent_appended_bytes_total"] {
			t.Errorf("an object of %v bytes holds %v", got["siltstone_agent_flushed_bytes_total"], got["siltstone_agent_appended_bytes_total"])
		}
	})
}
