package dynamo_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/coordinatortest"
	"github.com/siltstone-io/siltstone/coordinator/dynamo"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

func TestMain(m *testing.M) {
	// Nothing of the machine's own settings, or of its role, reaches a test.
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": servers.AccessKey, "AWS_SECRET_ACCESS_KEY": servers.SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var tables atomic.Int32

// newTable is a table that nothing else uses, still to be made.
func newTable(endpoint string) dynamo.Location {
	return dynamo.Location{
		Table: fmt.Sprintf("table-%d", tables.Add(1)), Region: servers.Region, Endpoint: endpoint,
	}
}

func open(t testing.TB, l dynamo.Location) *dynamo.Coordinator {
	t.Helper()
	c, err := dynamo.New(t.Context(), dynamo.Options{Location: l})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// opened is closed when the test ends.
func opened(t testing.TB, l dynamo.Location) *dynamo.Coordinator {
	t.Helper()
	c := open(t, l)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// made is a table that is there.
func made(t testing.TB, endpoint string) dynamo.Location {
	t.Helper()
	l := newTable(endpoint)
	if err := opened(t, l).EnsureTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSuite(t *testing.T) {
	endpoint := "http://" + servers.ForTest(t, servers.AWS)
	t.Run("plain", func(t *testing.T) {
		coordinatortest.RunFew(t, func(t *testing.T) coordinatortest.Store {
			l := made(t, endpoint)
			return func(t *testing.T) coordinator.Coordinator { return open(t, l) }
		})
	})
	t.Run("through faulty", func(t *testing.T) {
		coordinatortest.RunFew(t, func(t *testing.T) coordinatortest.Store {
			l := made(t, endpoint)
			return func(t *testing.T) coordinator.Coordinator { return faulty.Wrap(open(t, l), faulty.Transparent) }
		})
	})
}
