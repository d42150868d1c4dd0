package ledger_test

import (
	"fmt"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator/dynamo"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

// The same over a table, so that what the port says is what the table does.
func TestProtocolOverDynamo(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	endpoint := "http://" + servers.ForTest(t, servers.AWS)
	for seed := range uint64(20) {
		c, err := dynamo.New(t.Context(), dynamo.Options{Location: dynamo.Location{
			Table: fmt.Sprintf("seed-%d", seed), Region: servers.Region, Endpoint: endpoint,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.EnsureTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := runProtocolOver(c, planted.Bug{}, seeded(seed)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
