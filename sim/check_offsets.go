package sim

import "slices"

// An offsetChecker judges one partition's committed offset in one group. It is
// a register: commits and losses write it, OffsetFetch reads it, and each
// commit writes what no other does.
type offsetChecker struct {
	*groupChecker
	partition partition
	commits   []*commit
	recalls   []recall
	losses    []*loss
}

// checkOffsets: what is shown as committed was committed, and is the last that
// was, or one that may be; and it does not go back.
func (g *groupChecker) checkOffsets() {
	places := map[partition]*offsetChecker{}
	at := func(p partition) *offsetChecker {
		if places[p] == nil {
			places[p] = &offsetChecker{groupChecker: g, partition: p}
		}
		return places[p]
	}
	for _, x := range g.groups.commits {
		if x.group == g.name {
			at(x.partition).commits = append(at(x.partition).commits, x)
		}
	}
	for _, r := range g.groups.recalls {
		if r.group == g.name {
			at(r.partition).recalls = append(at(r.partition).recalls, r)
		}
	}
	for _, p := range sortedPartitions(places) {
		o := places[p]
		for _, l := range g.groups.losses {
			if l.concerns(g.name, p) {
				o.losses = append(o.losses, l)
			}
		}
		o.checkOrder()
		o.checkAbsent()
		o.checkLate()
		o.checkBackward()
	}
}

func (o *offsetChecker) failf(format string, args ...any) {
	o.groupChecker.failf("6: %s in %s: "+format, append([]any{o.partition, o.name}, args...)...)
}

// A zone is when a value was there, as far as it was written and read: if the
// first of these things had ended before the last began, from ended to began
// without a break; otherwise once at least from began to ended.
type zone struct {
	what         string
	ended, began moment
}

func (z *zone) unbroken() bool { return z.ended < z.began }

// rulesOut says that two values cannot both have been there.
func (z *zone) rulesOut(o *zone) bool {
	switch {
	case z.unbroken() && o.unbroken():
		return max(z.ended, o.ended) < min(z.began, o.began)
	case z.unbroken():
		return z.ended < o.began && o.ended < z.began
	}
	return false
}

// checkOrder: there is an order of all writes and reads in which each read
// shows the last write before it, and none comes before another that had ended
// when it began (Gibbons and Korach, Testing Shared Memories, 1997).
func (o *offsetChecker) checkOrder() {
	var zones []*zone
	of := map[string]*zone{}
	for _, x := range o.commits {
		of[x.id] = &zone{x.id, x.end(), x.sent}
		zones = append(zones, of[x.id])
	}
	for _, l := range o.losses {
		if l.acked {
			zones = append(zones, &zone{l.what, l.end(), l.sent})
		}
	}
	for _, r := range o.recalls {
		switch z := of[r.id]; {
		case r.offset < 0:
			zones = append(zones, &zone{"none", r.got, r.sent})
		case o.explains(r):
			z.ended, z.began = min(z.ended, r.got), max(z.began, r.sent)
		}
	}
	zones = slices.DeleteFunc(zones, func(z *zone) bool { return z.ended == never }) // it may never have been
	for i, a := range zones {
		for _, b := range zones[:i] {
			if a.rulesOut(b) || b.rulesOut(a) {
				o.failf("%s (moments %d and %d) and %s (moments %d and %d) are in no order", b.what, b.ended, b.began, a.what, a.ended, a.began)
			}
		}
	}
}

// explains says whether some commit is what was shown.
func (o *offsetChecker) explains(r recall) bool {
	x := o.commit(r.id)
	switch {
	case x == nil || x.sent > r.got:
		o.failf("%s was shown %d by %q, which nobody had committed", r.asker, r.offset, r.id)
	case x.refused:
		o.failf("%s was shown %d by %s, which was refused", r.asker, r.offset, r.id)
	case x.offset != r.offset || r.epoch >= 0 && x.epoch != r.epoch:
		o.failf("%s was shown %d of epoch %d by %s, which is %d of epoch %d", r.asker, r.offset, r.epoch, r.id, x.offset, x.epoch)
	default:
		return true
	}
	return false
}

func (o *offsetChecker) commit(id string) *commit {
	if i := slices.IndexFunc(o.commits, func(x *commit) bool { return x.id == id }); i >= 0 {
		return o.commits[i]
	}
	return nil
}

// checkAbsent: once a commit is acknowledged there is an offset, until it may
// be lost.
func (o *offsetChecker) checkAbsent() {
	for _, r := range o.recalls {
		for _, x := range o.commits {
			if r.offset < 0 && x.acked && x.got < r.sent && !o.lost(x.sent, r.got) {
				o.failf("%s was shown none (moments %d to %d), %s had been acknowledged", r.asker, r.sent, r.got, x.id)
				break
			}
		}
	}
}

func (o *offsetChecker) lost(from, to moment) bool {
	return slices.ContainsFunc(o.losses, func(l *loss) bool { return l.end() > from && l.sent < to })
}

// checkLate: once a generation is handed out, what its members find committed is
// the last of earlier ones. So a commit of an earlier one is not taken after
// that: whoever was shown one before it was shown it before.
func (o *offsetChecker) checkLate() {
	shown := map[string]bool{}
	for _, r := range o.recalls {
		shown[r.id] = true
	}
	for _, x := range o.commits {
		if x.generation < 0 || !x.acked && !shown[x.id] {
			continue
		}
		for _, r := range o.recalls {
			before := o.commit(r.id)
			if before == nil || before.end() > x.sent {
				continue
			}
			for _, j := range o.joinings {
				if j.generation > x.generation && j.got < r.sent && !o.died(j.sent, max(r.got, x.end())) {
					o.failf("%s, of generation %d, was taken after generation %d had been handed out: %s was shown %s then (moment %d)",
						x.id, x.generation, j.generation, r.asker, r.id, r.got)
					return
				}
			}
		}
	}
}

// checkBackward: an offset that was shown does not go back, unless by one who
// was never a member, or by a member that sent the lower one before it knew
// what had become of it and the higher one. A member goes on from what it finds
// committed when it has its share: so whatever lowers the offset otherwise is
// of a member that is none any more.
func (o *offsetChecker) checkBackward() {
	for _, a := range o.recalls {
		for _, b := range o.recalls {
			if b.offset >= 0 && b.offset < a.offset && a.got < b.sent && !o.mayFall(a, b) {
				o.failf("%d was shown, by %s, then %d, by %s (moments %d and %d)", a.offset, a.id, b.offset, b.id, a.got, b.got)
			}
		}
	}
}

func (o *offsetChecker) mayFall(from, to recall) bool {
	x := o.commit(from.id)
	if x == nil || o.lost(x.sent, to.got) {
		return true
	}
	for _, low := range o.commits {
		if low.refused || low.offset >= from.offset || low.end() < x.sent || low.sent > to.got {
			continue
		}
		if low.generation < 0 {
			return true
		}
		for _, high := range o.commits {
			if high.standing == low.standing && high.offset > low.offset && low.end() > high.sent {
				return true
			}
		}
	}
	return false
}
