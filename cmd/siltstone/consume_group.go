package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// lookEvery is how often a member without records looks whether its group is done.
	lookEvery = 250 * time.Millisecond
	// polledAtOnce bounds what is printed between two commits.
	polledAtOnce = 10_000
	// commitTimeout bounds a commit, which an interrupt does not end.
	commitTimeout = 10 * time.Second
)

// runInGroup reads as a member of a group. It prints, then commits, then lets
// others have its partitions: so nothing is passed over.
func (c *consumer) runInGroup(ctx context.Context, to *client, w io.Writer, opts []kgo.Opt) error {
	begin := kgo.NewOffset().AtStart()
	if c.from.at == atEnd {
		begin = kgo.NewOffset().AtEnd()
	}
	cl, err := to.open(ctx, append(opts, kgo.ConsumerGroup(c.group), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.ConsumeResetOffset(begin))...)
	if err != nil {
		return err
	}
	defer cl.CloseAllowingRebalance()
	adm := kadm.NewClient(cl)
	ends, err := c.ends(ctx, adm)
	if err != nil {
		return err
	}
	cl.AddConsumeTopics(c.topic) // it joins now that the topic is there
	out := bufio.NewWriter(w)
	for printed, done := 0, false; !done; {
		if c.until.at == atEnd {
			if done, err = c.groupIsAt(ctx, adm, ends); done || err != nil {
				return err
			}
		}
		batch, err := c.pollMember(ctx, cl)
		if err != nil || ctx.Err() != nil {
			return err
		}
		handled := batch[:0:0]
		for _, r := range batch {
			handled = append(handled, r)
			if !c.wants(r) {
				continue
			}
			if err := c.out(out, r); err != nil {
				return err
			}
			if printed++; printed == c.count {
				done = true
				break
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if err := c.commit(ctx, cl, handled); err != nil {
			return err
		}
		cl.AllowRebalance()
	}
	return nil
}

// pollMember waits for records; with --exit only for a moment.
func (c *consumer) pollMember(ctx context.Context, cl *kgo.Client) ([]*kgo.Record, error) {
	moment, cancel := ctx, context.CancelFunc(func() {})
	if c.until.at == atEnd {
		moment, cancel = context.WithTimeout(ctx, lookEvery)
	}
	defer cancel()
	fetches := cl.PollRecords(moment, polledAtOnce)
	for _, e := range fetches.Errors() {
		session, ended := errors.AsType[*kgo.ErrGroupSession](e.Err)
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled):
		case ended && !saidByServer(session.Err): // it is away; the client joins again by itself
		case ended:
			return nil, explainGroup(c.group, e.Err, "")
		default:
			if err := readFailure(e); err != nil {
				return nil, err
			}
		}
	}
	return fetches.Records(), nil
}

func saidByServer(err error) bool {
	_, is := errors.AsType[*kerr.Error](err)
	return is
}

// commit what is printed, also after an interrupt.
func (c *consumer) commit(ctx context.Context, cl *kgo.Client, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := cl.CommitRecords(ctx, records...); err != nil {
		return explainGroup(c.group, err, "")
	}
	return nil
}

// groupIsAt says whether the group has committed up to these ends, or has
// nothing to read.
func (c *consumer) groupIsAt(ctx context.Context, adm *kadm.Client, ends kadm.ListedOffsets) (bool, error) {
	committed, err := adm.FetchOffsets(ctx, c.group)
	switch {
	case ctx.Err() != nil:
		return true, nil //nolint:nilerr // an interrupt is how it ends
	case err != nil && !errors.Is(err, kerr.GroupIDNotFound):
		return false, explainGroup(c.group, err, "")
	}
	starts, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListStartOffsets(ctx, c.topic) })
	if err != nil {
		return false, err
	}
	for p, end := range ends[c.topic] {
		start, _ := starts.Lookup(c.topic, p)
		at := start.Offset
		if c.from.at == atEnd {
			at = end.Offset
		}
		if o, ok := committed.Lookup(c.topic, p); ok && o.At >= 0 {
			at = max(start.Offset, o.At)
		}
		if at < end.Offset {
			return false, nil
		}
	}
	return true, nil
}
