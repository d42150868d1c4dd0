package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// An object in parts: create the upload; send the parts; complete it, which
// alone makes the object, or fails if there is one. Whatever fails, the upload
// is aborted: its parts are stored, and paid for, but seen by nobody. Where
// that fails too, or nobody is left to do it, Reap does.

// partsAtOnce of one object are under way.
const partsAtOnce = 4

func (b *Bucket) putParts(ctx context.Context, key string, body bucket.Body) error {
	u := Upload{Key: key}
	err := b.request(ctx, func(ctx context.Context) (err error) {
		u.ID, err = b.o.Uploads.Create(ctx, key)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin an upload: %w", err)
	}
	parts, err := b.sendParts(ctx, u, body)
	if err == nil {
		err = b.request(ctx, func(ctx context.Context) error { return b.o.Uploads.Complete(ctx, u, parts) })
		err = b.settle(ctx, key, err)
	}
	if err != nil {
		b.abort(ctx, u)
	}
	return err
}

// sendParts sends them in rounds, as long as they bring it further: a round
// ends with the first part that fails, and the next sends what is missing.
func (b *Bucket) sendParts(ctx context.Context, u Upload, body bucket.Body) ([]Part, error) {
	size := body.Len()
	partBytes := max(b.o.PartBytes, (size+maxParts-1)/maxParts)
	parts := make([]Part, (size+partBytes-1)/partBytes)
	stuck := true // after a round that sent nothing
	for missing := len(parts); missing > 0; {
		r := round{b: b, u: u, body: body, partBytes: partBytes, parts: parts}
		err := r.run(ctx)
		if err != nil && (r.sent == 0 && stuck || !errors.Is(err, siltstone.ErrUnavailable)) {
			return nil, err
		}
		missing, stuck = missing-r.sent, r.sent == 0
	}
	return parts, nil
}

type round struct {
	b         *Bucket
	u         Upload
	body      bucket.Body
	partBytes int64

	mu    sync.Mutex
	parts []Part // those that are there have a number
	sent  int
	err   error
}

func (r *round) run(ctx context.Context) error {
	var senders sync.WaitGroup
	slots := make(chan struct{}, partsAtOnce)
	for i := range r.parts {
		slots <- struct{}{}
		if !r.wants(i) {
			<-slots
			continue
		}
		senders.Go(func() {
			part, err := r.send(ctx, i)
			r.settle(i, part, err)
			<-slots
		})
	}
	senders.Wait()
	return r.err
}

func (r *round) wants(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err == nil && r.parts[i].Number == 0
}

func (r *round) settle(i int, part Part, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return
	}
	r.parts[i] = part
	r.sent++
}

func (r *round) send(ctx context.Context, i int) (Part, error) {
	from := int64(i) * r.partBytes
	p := newPayload(section(r.body, from, from+r.partBytes))
	defer p.detach()
	part := Part{Number: i + 1, CRC32C: p.CRC32C}
	err := r.b.request(ctx, func(ctx context.Context) (err error) {
		part.ETag, err = r.b.o.Uploads.Part(ctx, r.u, part.Number, p)
		return err
	})
	if err != nil {
		return Part{}, fmt.Errorf("part %d: %w", part.Number, err)
	}
	return part, nil
}

// abort is tried once, also for a caller that is gone.
func (b *Bucket) abort(ctx context.Context, u Upload) {
	_ = b.request(context.WithoutCancel(ctx), func(ctx context.Context) error { return b.o.Uploads.Abort(ctx, u) })
}

// Reap aborts uploads that were begun before a time, and returns how many. No
// upload of a live process may be so old.
func (b *Bucket) Reap(ctx context.Context, before time.Time) (reaped int, err error) {
	var after Upload
	var failed error // the first
	for more := true; more; {
		var page []Upload
		err := b.request(ctx, func(ctx context.Context) (err error) {
			page, more, err = b.o.Uploads.Pending(ctx, after)
			return err
		})
		if err != nil {
			return reaped, fmt.Errorf("list uploads: %w", err)
		}
		if more && len(page) == 0 {
			return reaped, fmt.Errorf("list uploads: %w: an empty page, and more to come", ErrGarbled)
		}
		for _, u := range page {
			after = u
			if !u.Started.Before(before) || !strings.HasPrefix(u.Key, b.o.Prefix) {
				continue
			}
			err := b.request(ctx, func(ctx context.Context) error { return b.o.Uploads.Abort(ctx, u) })
			if answer := (*Answer)(nil); err != nil && !(errors.As(err, &answer) && answer.Code == "NoSuchUpload") {
				failed = cmp.Or(failed, fmt.Errorf("abort the upload of %s: %w", u.Key, err))
				continue // the others go all the same
			}
			reaped++
		}
	}
	return reaped, failed
}
