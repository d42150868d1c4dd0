package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Append implements coordinator.Ledger.
func (c *Coordinator) Append(ctx context.Context, ledger string, e coordinator.Entry) error {
	if err := c.begin(ctx, checkLedger(ledger, coordinator.CheckAppend(ledger, e))); err != nil {
		return err
	}
	defer c.calls.Done()
	err := c.put(ctx, &dynamodb.PutItemInput{Item: encodeEntry(ledger, e), ConditionExpression: aws.String(ifAbsent)})
	taken, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return err
	}
	if len(taken.Item) == 0 {
		return fmt.Errorf("table %s, ledger %s: slot %d is taken, and the store does not say by what: %w", c.table, ledger, e.Seq, siltstone.ErrUnavailable)
	}
	occupant, err := decodeEntry(taken.Item)
	if err != nil {
		return fmt.Errorf("table %s, ledger %s: %w", c.table, ledger, err)
	}
	return &coordinator.Conflict{Occupant: occupant}
}

// Read implements coordinator.Ledger.
func (c *Coordinator) Read(ctx context.Context, ledger string, after coordinator.Seq, limit int) ([]coordinator.Entry, error) {
	if err := c.begin(ctx, checkLedger(ledger, coordinator.CheckName(ledger))); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	r := reading{last: after, limit: min(limit, coordinator.MaxReadEntries)}
	for !r.full() {
		page, more, err := c.slots(ctx, ledger, r.last, r.limit-len(r.entries))
		if err == nil {
			err = r.take(page)
		}
		if err != nil {
			return nil, fmt.Errorf("ledger %s: %w", ledger, err)
		}
		if !more && r.hole == 0 {
			break
		}
	}
	return r.entries, nil
}

// reading gathers the entries of one Read.
type reading struct {
	entries   []coordinator.Entry
	last      coordinator.Seq // the slot before the next
	limit     int
	sizeBytes int
	done      bool            // the next entry is one too many
	hole      coordinator.Seq // found empty once, with a filled slot after it
}

func (r *reading) full() bool { return r.done || len(r.entries) >= r.limit || r.last+1 == 0 }

// take takes what of a page follows without a hole.
//
// A page is no snapshot: the slot that it shows as empty may have been filled
// while it was read, and after that the one behind it, which it shows. So a
// hole is one only if a second page, begun after the first, shows it too: the
// slot behind it was filled when that was read, and by then all before it were.
func (r *reading) take(page []item) error {
	for _, it := range page {
		e, err := decodeEntry(it)
		if err != nil {
			return err
		}
		if next := r.last + 1; e.Seq != next {
			if r.hole == next {
				return coordinator.ErrGap
			}
			r.hole = next
			return nil
		}
		r.hole = 0
		if r.sizeBytes += len(e.Data); r.sizeBytes > coordinator.MaxReadBytes && len(r.entries) > 0 {
			r.done = true
			return nil
		}
		r.entries, r.last = append(r.entries, e), e.Seq
	}
	r.hole = 0
	return nil
}

// slots reads filled slots after one, at most limit; more says that there may be more.
func (c *Coordinator) slots(ctx context.Context, ledger string, after coordinator.Seq, limit int) (page []item, more bool, err error) {
	in := &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("p = :p AND s > :after"),
		ExpressionAttributeValues: item{":p": str("l/" + ledger), ":after": bin(seqBytes(after))},
		Limit:                     aws.Int32(int32(limit)),
	}
	out, err := c.query(ctx, in)
	if err != nil {
		return nil, false, err
	}
	return out.Items, len(out.LastEvaluatedKey) > 0, nil
}

// Floor implements coordinator.Ledger.
func (c *Coordinator) Floor(ctx context.Context, ledger string) (coordinator.Seq, error) {
	if err := c.begin(ctx, checkLedger(ledger, coordinator.CheckName(ledger))); err != nil {
		return 0, err
	}
	defer c.calls.Done()
	it, err := c.get(ctx, slotKey(ledger, 0))
	if err != nil {
		return 0, err
	}
	floor, err := decodeFloor(it)
	if err != nil {
		return 0, fmt.Errorf("table %s, ledger %s: %w", c.table, ledger, err)
	}
	return floor, nil
}
