package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/siltstone-io/siltstone/coordinator"
)

// batchDeletes is how many deletes one request may hold.
const batchDeletes = 25

// Trim implements coordinator.Ledger. First the floor is raised, then the slots
// are deleted: whoever finds one empty finds the floor above it.
func (c *Coordinator) Trim(ctx context.Context, ledger string, through coordinator.Seq) error {
	if err := c.begin(ctx, checkLedger(ledger, coordinator.CheckName(ledger))); err != nil {
		return err
	}
	defer c.calls.Done()
	if through == 0 {
		return nil
	}
	if err := c.raiseFloor(ctx, ledger, through); err != nil {
		return fmt.Errorf("raise the floor of %s: %w", ledger, err)
	}
	if err := c.deleteSlots(ctx, ledger, through); err != nil {
		return fmt.Errorf("floor of %s raised, slots left: %w: %w", ledger, coordinator.ErrUnknown, err)
	}
	return nil
}

func (c *Coordinator) raiseFloor(ctx context.Context, ledger string, through coordinator.Seq) error {
	err := c.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       slotKey(ledger, 0),
		UpdateExpression:          aws.String("SET f = :f"),
		ConditionExpression:       aws.String("attribute_not_exists(f) OR f < :f"),
		ExpressionAttributeValues: item{":f": bin(seqBytes(through))},
	})
	if _, higher := errors.AsType[*types.ConditionalCheckFailedException](err); higher {
		return nil
	}
	return err
}

// deleteSlots deletes what it finds: an earlier trim may have been interrupted
// anywhere.
func (c *Coordinator) deleteSlots(ctx context.Context, ledger string, through coordinator.Seq) error {
	for more := true; more; {
		page, err := c.query(ctx, &dynamodb.QueryInput{
			KeyConditionExpression: aws.String("p = :p AND s BETWEEN :first AND :through"),
			ExpressionAttributeValues: item{
				":p": str("l/" + ledger), ":first": bin(seqBytes(1)), ":through": bin(seqBytes(through)),
			},
			ProjectionExpression: aws.String("p, s"),
		})
		if err != nil {
			return err
		}
		for len(page.Items) > 0 {
			n := min(batchDeletes, len(page.Items))
			if err := c.deleteItems(ctx, page.Items[:n]); err != nil {
				return err
			}
			page.Items = page.Items[n:]
		}
		more = len(page.LastEvaluatedKey) > 0
	}
	return nil
}

// deleteItems deletes one batch. What the store leaves of it, since it is busy,
// is what a throttled request would be.
func (c *Coordinator) deleteItems(ctx context.Context, keys []item) error {
	batch := make([]types.WriteRequest, len(keys))
	for i, key := range keys {
		batch[i].DeleteRequest = &types.DeleteRequest{Key: key}
	}
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		rest, err := c.batchWrite(ctx, batch)
		if err != nil || len(rest) == 0 {
			return err
		}
		if len(rest) < len(batch) {
			pause = pauseFirst
		}
		if batch = rest; !c.wait(ctx, jittered(pause)) {
			return c.failure(request{write: true}, throttled, errUnprocessed)
		}
	}
}

var errUnprocessed = errors.New("deletes are left unprocessed")
