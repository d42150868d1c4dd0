package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/siltstone-io/siltstone"
)

// shape is of every table: the names, kinds and types of its keys.
const shape = "p HASH S, s RANGE B"

// CheckTable says whether the table is there and can be a coordinator. A table
// that is not there is ErrNoTable, one of another shape siltstone.ErrForeign.
func (c *Coordinator) CheckTable(ctx context.Context) error {
	if err := c.begin(ctx, nil); err != nil {
		return err
	}
	defer c.calls.Done()
	table, err := c.describe(ctx)
	if err != nil {
		return err
	}
	if making, err := c.making(table); !making {
		return err
	}
	return fmt.Errorf("table %s is still being made: %w", c.table, siltstone.ErrUnavailable)
}

// EnsureTable makes the table, unless it is there, and waits until it can be
// used. It is paid by request. Where it is of another shape, or removes items by
// another attribute than tombstones have, it is siltstone.ErrForeign.
func (c *Coordinator) EnsureTable(ctx context.Context) error {
	if err := c.begin(ctx, nil); err != nil {
		return err
	}
	defer c.calls.Done()
	_, err := c.describe(ctx)
	if errors.Is(err, ErrNoTable) {
		err = c.createTable(ctx)
	}
	if err == nil {
		err = c.awaitTable(ctx)
	}
	if err == nil {
		err = c.expireTombstones(ctx)
	}
	return err
}

// describe reads what the table is like, and refuses a shape that is another.
func (c *Coordinator) describe(ctx context.Context) (*types.TableDescription, error) {
	table := &types.TableDescription{}
	err := c.control(ctx, "DescribeTable", func(ctx context.Context) error {
		out, err := c.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.table})
		if err == nil && out.Table != nil {
			table = out.Table
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if got := shapeOf(table); got != shape {
		return nil, fmt.Errorf("table %s has the keys %s, not %s: it %w", c.table, got, shape, siltstone.ErrForeign)
	}
	return table, nil
}

func shapeOf(table *types.TableDescription) string {
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range table.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	var keys []string
	for _, k := range table.KeySchema {
		name := aws.ToString(k.AttributeName)
		keys = append(keys, fmt.Sprintf("%s %s %s", name, k.KeyType, kinds[name]))
	}
	return strings.Join(keys, ", ")
}

func (c *Coordinator) createTable(ctx context.Context) error {
	err := c.control(ctx, "CreateTable", func(ctx context.Context) error {
		_, err := c.client.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName:   &c.table,
			BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String(attrPartition), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String(attrSort), AttributeType: types.ScalarAttributeTypeB},
			},
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String(attrPartition), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String(attrSort), KeyType: types.KeyTypeRange},
			},
		})
		return err
	})
	if _, made := errors.AsType[*types.ResourceInUseException](err); made {
		return nil // by another, or by a try whose reply was lost
	}
	return err
}

// awaitTable waits until a table that is being made is there.
func (c *Coordinator) awaitTable(ctx context.Context) error {
	for {
		table, err := c.describe(ctx)
		making := errors.Is(err, ErrNoTable) // for a moment after it was created
		if err == nil {
			making, err = c.making(table)
		}
		if !making {
			return err
		}
		if !c.wait(ctx, jittered(pauseMost)) {
			return fmt.Errorf("table %s is still being made: %w", c.table, siltstone.ErrUnavailable)
		}
	}
}

// making says whether a table is still being made. One that is not, and cannot
// be used either, is an error.
func (c *Coordinator) making(table *types.TableDescription) (bool, error) {
	switch table.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating:
		return false, nil
	case types.TableStatusCreating:
		return true, nil
	}
	return false, fmt.Errorf("table %s is %s: %w", c.table, table.TableStatus, siltstone.ErrUnavailable)
}

// expireTombstones has DynamoDB remove tombstones that are old.
func (c *Coordinator) expireTombstones(ctx context.Context) error {
	if on, err := c.expires(ctx); on || err != nil {
		return err
	}
	err := c.control(ctx, "UpdateTimeToLive", func(ctx context.Context) error {
		_, err := c.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &c.table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(attrExpiry), Enabled: aws.Bool(true)},
		})
		return err
	})
	if err == nil {
		return nil
	}
	// It is refused where it is on, which another may have done meanwhile.
	if on, again := c.expires(ctx); on || again != nil {
		return again
	}
	return err
}

// expires says whether DynamoDB removes tombstones.
func (c *Coordinator) expires(ctx context.Context) (on bool, err error) {
	var ttl types.TimeToLiveDescription
	err = c.control(ctx, "DescribeTimeToLive", func(ctx context.Context) error {
		out, err := c.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &c.table})
		if err == nil && out.TimeToLiveDescription != nil {
			ttl = *out.TimeToLiveDescription
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if name := aws.ToString(ttl.AttributeName); name != "" && name != attrExpiry {
		return false, fmt.Errorf("table %s removes items by their attribute %s: it %w", c.table, name, siltstone.ErrForeign)
	}
	return ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabling, nil
}

// control sends a request about the table itself. Each comes to the same however
// often it is made, and takes no units.
func (c *Coordinator) control(ctx context.Context, kind string, do func(context.Context) error) error {
	return c.send(ctx, request{kind: kind, do: func(ctx context.Context) (float64, error) { return 0, do(ctx) }})
}
