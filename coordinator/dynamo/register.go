package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/siltstone-io/siltstone/coordinator"
)

// Get implements coordinator.Register.
func (c *Coordinator) Get(ctx context.Context, key string) (coordinator.Value, error) {
	if err := c.begin(ctx, coordinator.CheckName(key)); err != nil {
		return coordinator.Value{}, err
	}
	defer c.calls.Done()
	it, err := c.get(ctx, registerKey(key))
	if err != nil {
		return coordinator.Value{}, err
	}
	return c.decodeRegister(it)
}

// Put implements coordinator.Register.
func (c *Coordinator) Put(ctx context.Context, key string, data []byte, ifVersion coordinator.Version, nonce coordinator.Nonce) (coordinator.Version, error) {
	if err := c.begin(ctx, coordinator.CheckPut(key, data)); err != nil {
		return "", err
	}
	defer c.calls.Done()
	return c.putRegister(ctx, key, coordinator.Value{Data: data, Nonce: nonce}, ifVersion)
}

// Delete implements coordinator.Register.
func (c *Coordinator) Delete(ctx context.Context, key string, ifVersion coordinator.Version, nonce coordinator.Nonce) error {
	if err := c.begin(ctx, coordinator.CheckName(key)); err != nil {
		return err
	}
	defer c.calls.Done()
	_, err := c.putRegister(ctx, key, coordinator.Value{Deleted: true, Nonce: nonce}, ifVersion)
	return err
}

// putRegister gives a value a version that no other will have: one try that
// lands late must not be taken for another.
func (c *Coordinator) putRegister(ctx context.Context, key string, v coordinator.Value, ifVersion coordinator.Version) (coordinator.Version, error) {
	v.Version = coordinator.Version(rand.Text())
	in := &dynamodb.PutItemInput{Item: encodeRegister(key, v, time.Now()), ConditionExpression: aws.String(ifAbsent)}
	if ifVersion != "" {
		in.ConditionExpression = aws.String("v = :v")
		in.ExpressionAttributeValues = item{":v": str(string(ifVersion))}
	}
	err := c.put(ctx, in)
	other, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return v.Version, err
	}
	current, err := c.decodeRegister(other.Item)
	if err != nil {
		return "", err
	}
	return "", &coordinator.VersionConflict{Current: current}
}

func (c *Coordinator) decodeRegister(it item) (coordinator.Value, error) {
	v, err := decodeRegister(it)
	if err != nil {
		return v, fmt.Errorf("table %s: %w", c.table, err)
	}
	return v, nil
}

// List implements coordinator.Register. DynamoDB sorts keys as bytes.
func (c *Coordinator) List(ctx context.Context, prefix string) ([]coordinator.Listed, error) {
	if err := c.begin(ctx, nil); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	in := &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("p = :p"),
		ExpressionAttributeValues: item{":p": str(registers)},
		FilterExpression:          aws.String("attribute_not_exists(t)"),
	}
	switch {
	case len(prefix) > coordinator.MaxNameBytes:
		return nil, nil // and no key for DynamoDB to begin with
	case prefix != "":
		in.KeyConditionExpression = aws.String("p = :p AND begins_with(s, :prefix)")
		in.ExpressionAttributeValues[":prefix"] = bin([]byte(prefix))
	}
	var listed []coordinator.Listed
	for {
		page, err := c.query(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			v, err := c.decodeRegister(it)
			if err != nil {
				return nil, err
			}
			listed = append(listed, coordinator.Listed{Key: string(bytesOf(it, attrSort)), Value: v})
		}
		if len(page.LastEvaluatedKey) == 0 {
			return listed, nil
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
	}
}
