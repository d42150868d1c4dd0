package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The requests, each with what it takes: as the store says or, where that is
// silent, by the sizes. It is silent when a condition fails, which takes what
// the larger of the two items would.

// kinds are all kinds of requests.
var kinds = []string{
	"PutItem", "GetItem", "Query", "UpdateItem", "BatchWriteItem",
	"DescribeTable", "CreateTable", "DescribeTimeToLive", "UpdateTimeToLive",
}

// ifAbsent is the condition that an item is not there.
const ifAbsent = "attribute_not_exists(p)"

// put writes an item on a condition. If that fails, the error is
// *types.ConditionalCheckFailedException with what is there instead.
func (c *Coordinator) put(ctx context.Context, in *dynamodb.PutItemInput) error {
	in.TableName = &c.table
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return c.send(ctx, request{kind: "PutItem", once: true, write: true, units: c.metrics.writeUnits,
		do: func(ctx context.Context) (float64, error) {
			out, err := c.client.PutItem(ctx, in)
			if err != nil {
				return writeUnits(max(sizeBytes(in.Item), sizeBytes(failedOn(err)))), err
			}
			return unitsOf(out.ConsumedCapacity, writeUnits(sizeBytes(in.Item))), nil
		}})
}

// get is consistent. There is no item if it is empty.
func (c *Coordinator) get(ctx context.Context, key item) (found item, err error) {
	in := &dynamodb.GetItemInput{
		TableName: &c.table, Key: key, ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	err = c.send(ctx, request{kind: "GetItem", units: c.metrics.readUnits,
		do: func(ctx context.Context) (float64, error) {
			out, err := c.client.GetItem(ctx, in)
			if err != nil {
				return 1, err
			}
			found = out.Item
			return unitsOf(out.ConsumedCapacity, readUnits(sizeBytes(out.Item))), nil
		}})
	return found, err
}

// query is consistent, each page for itself.
func (c *Coordinator) query(ctx context.Context, in *dynamodb.QueryInput) (page *dynamodb.QueryOutput, err error) {
	in.TableName, in.ConsistentRead = &c.table, aws.Bool(true)
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	err = c.send(ctx, request{kind: "Query", units: c.metrics.readUnits,
		do: func(ctx context.Context) (float64, error) {
			page, err = c.client.Query(ctx, in)
			if err != nil {
				return 1, err
			}
			size := 0
			for _, it := range page.Items {
				size += sizeBytes(it)
			}
			return unitsOf(page.ConsumedCapacity, readUnits(size)), nil
		}})
	return page, err
}

// update changes a small item, on a condition that makes it come to the same
// however often it is done.
func (c *Coordinator) update(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	in.TableName = &c.table
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	return c.send(ctx, request{kind: "UpdateItem", write: true, units: c.metrics.writeUnits,
		do: func(ctx context.Context) (float64, error) {
			out, err := c.client.UpdateItem(ctx, in)
			if err != nil {
				return 1, err
			}
			return unitsOf(out.ConsumedCapacity, 1), nil
		}})
}

// batchWrite does some of a batch, and returns the rest.
func (c *Coordinator) batchWrite(ctx context.Context, batch []types.WriteRequest) (rest []types.WriteRequest, err error) {
	in := &dynamodb.BatchWriteItemInput{
		RequestItems:           map[string][]types.WriteRequest{c.table: batch},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	err = c.send(ctx, request{kind: "BatchWriteItem", write: true, units: c.metrics.writeUnits,
		do: func(ctx context.Context) (float64, error) {
			out, err := c.client.BatchWriteItem(ctx, in)
			if err != nil {
				return float64(len(batch)), err
			}
			rest = out.UnprocessedItems[c.table]
			if len(out.ConsumedCapacity) == 1 {
				return unitsOf(&out.ConsumedCapacity[0], 0), nil
			}
			return float64(len(batch) - len(rest)), nil
		}})
	return rest, err
}

// unitsOf is what the store says that it took, or else what it should be.
func unitsOf(told *types.ConsumedCapacity, computed float64) float64 {
	if told == nil || told.CapacityUnits == nil {
		return computed
	}
	return *told.CapacityUnits
}
