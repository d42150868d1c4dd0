package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/dynamo"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

func TestTable(t *testing.T) {
	endpoint := "http://" + servers.ForTest(t, servers.AWS)
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(servers.Region))
	if err != nil {
		t.Fatal(err)
	}
	raw := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint })

	t.Run("missing, then made", func(t *testing.T) {
		l := newTable(endpoint)
		c := opened(t, l)
		if err := c.CheckTable(t.Context()); !errors.Is(err, dynamo.ErrNoTable) || !strings.Contains(err.Error(), "siltstone cluster init") {
			t.Errorf("a missing table: %v", err)
		}
		err := c.Append(t.Context(), "a", coordinator.Entry{Seq: 1})
		if !errors.Is(err, dynamo.ErrNoTable) || errors.Is(err, coordinator.ErrUnknown) {
			t.Errorf("an append to a missing table: %v", err)
		}
		// Several at once, as several agents may be started, and again.
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := c.EnsureTable(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(c.EnsureTable(t.Context()), c.CheckTable(t.Context())); err != nil {
			t.Error(err)
		}
		out, err := raw.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &l.Table})
		if err != nil || out.Table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
			t.Errorf("%+v, %v", out, err)
		}
		ttl, err := raw.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &l.Table})
		if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "t" {
			t.Errorf("%+v, %v", ttl, err)
		}
	})
	t.Run("where AWS's own variables say", func(t *testing.T) {
		t.Setenv("AWS_ENDPOINT_URL", endpoint)
		t.Setenv("AWS_REGION", servers.Region)
		c := opened(t, dynamo.Location{Table: newTable(endpoint).Table})
		if err := c.EnsureTable(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for name, keys := range map[string][2]types.ScalarAttributeType{
		"id":   {types.ScalarAttributeTypeS, ""},
		"p":    {types.ScalarAttributeTypeS, ""},
		"p, s": {types.ScalarAttributeTypeS, types.ScalarAttributeTypeN},
	} {
		t.Run("another's, with the keys "+name, func(t *testing.T) {
			l := newTable(endpoint)
			makeTable(t, raw, l.Table, name, keys)
			c := opened(t, l)
			for _, err := range []error{c.EnsureTable(t.Context()), c.CheckTable(t.Context())} {
				if !errors.Is(err, siltstone.ErrForeign) || !strings.Contains(err.Error(), l.Table) {
					t.Errorf("%v, want it refused as foreign", err)
				}
			}
		})
	}
	t.Run("one that removes items by something else", func(t *testing.T) {
		l := newTable(endpoint)
		makeTable(t, raw, l.Table, "p, s", [2]types.ScalarAttributeType{"S", "B"})
		_, err := raw.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               &l.Table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("x"), Enabled: aws.Bool(true)},
		})
		if err != nil {
			t.Fatal(err)
		}
		c := opened(t, l)
		if err := c.EnsureTable(t.Context()); !errors.Is(err, siltstone.ErrForeign) {
			t.Errorf("%v, want it refused as foreign", err)
		}
	})
}

// makeTable makes a table with one key or two.
func makeTable(t *testing.T, raw *dynamodb.Client, table, keys string, kinds [2]types.ScalarAttributeType) {
	t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest}
	for i, name := range strings.Split(keys, ", ") {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kinds[i]})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	_, err := raw.CreateTable(t.Context(), in)
	// The SDK tries again where a reply was lost, and then finds its own table.
	if _, made := errors.AsType[*types.ResourceInUseException](err); err != nil && !made {
		t.Fatal(err)
	}
}

// Without a region nothing can be signed; it is said at once.
func TestNoRegion(t *testing.T) {
	_, err := dynamo.New(context.Background(), dynamo.Options{Location: dynamo.Location{Table: "siltstone"}})
	if err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Error(err)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	if _, err := dynamo.New(context.Background(), dynamo.Options{Location: dynamo.Location{Table: "siltstone"}}); err != nil {
		t.Error(err)
	}
}
