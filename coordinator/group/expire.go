package group

// expireOffsets forgets offsets that are too old, and groups of which nothing
// else is left (KIP-211). Groups in which something changes just now wait for
// the next time.
func (m *Machine) expireOffsets() {
	limits := m.o.Settings()
	for _, g := range m.sorted() {
		if f := g.folded(); f != nil && g.next == nil && g.sending == nil {
			g.expire(f, m.wallMS()-limits.RetentionMS)
		}
	}
	m.deadlines.set(&m.retention, m.in(max(limits.RetentionCheckMS, 1)))
}

// expire forgets the offsets that have not been needed since a time.
func (g *classic) expire(f *Group, sinceMS int64) {
	stable := g.phase == Stable && f.Type == consumerType
	if g.phase != Empty && !stable {
		return
	}
	reads := g.subscriptions()
	var old []TopicPartition
	for tp, o := range f.Offsets {
		neededMS := o.TimeMS
		if g.phase == Empty && f.Type != "" {
			// Since the last member left; or since then by somebody without.
			neededMS = max(neededMS, f.ChangedMS)
		}
		expired := neededMS <= sinceMS
		if o.ExpireMS != noExpiry {
			expired = o.ExpireMS <= g.m.wallMS()
		}
		if expired && !reads.topic(tp.Topic) {
			old = append(old, tp)
		}
	}
	switch {
	case len(old) == len(f.Offsets) && g.phase == Empty && len(g.pending) == 0:
		g.change().delete()
	default:
		for _, tp := range old {
			g.change().forget(tp)
		}
	}
}
