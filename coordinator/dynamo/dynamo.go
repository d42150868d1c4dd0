// Package dynamo is a coordinator in one DynamoDB table, or in what speaks its
// protocol.
//
// It owns how ledgers and registers lie in the table (docs/formats/dynamodb.md),
// what becomes of a request that fails, and the count of what requests cost. It
// starts no goroutine. What is retried, and what is not, stands in send.go.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Options of a Coordinator.
type Options struct {
	Location
	// Timeout bounds each request, whatever deadline its caller has: 5 s if zero.
	Timeout time.Duration
	Metrics prometheus.Registerer // none if nil
}

// Coordinator implements coordinator.Coordinator.
type Coordinator struct {
	table       string
	timeout     time.Duration
	client      *dynamodb.Client
	http        *http.Client
	credentials *aws.CredentialsCache // nil: there are none to renew
	metrics     *metrics
	reads       pace // apart, as a table may refuse one and do the other
	writes      pace
	renewed     renewals

	mu      sync.Mutex // of closed, and of calls.Add against calls.Wait
	closed  bool
	closing chan struct{} // ends the pauses of calls under way
	calls   sync.WaitGroup
}

// New makes a coordinator over a table, which need not exist yet. Credentials,
// and what the location leaves open, come from where all of AWS's tools take
// them: the environment, the shared files, the machine's role. No request is
// sent.
func New(ctx context.Context, o Options) (*Coordinator, error) {
	var load []func(*config.LoadOptions) error
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("read AWS's settings: %w", err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("no region for table %s: add ?region=... to its URL, or set AWS_REGION", o.Table)
	}
	return newCoordinator(cfg, o, newTransport()), nil
}

func newCoordinator(cfg aws.Config, o Options, transport http.RoundTripper) *Coordinator {
	c := &Coordinator{
		table:   o.Table,
		timeout: o.Timeout,
		http:    &http.Client{Transport: transport},
		metrics: newMetrics(o.Metrics),
		closing: make(chan struct{}),
	}
	if c.timeout == 0 {
		c.timeout = 5 * time.Second
	}
	c.credentials, _ = cfg.Credentials.(*aws.CredentialsCache)
	c.client = dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) {
		d.HTTPClient = wholeBodies{c.http}
		d.Retryer = aws.NopRetryer{} // see send.go
		d.Logger = logging.Nop{}     // what it warns of is in an error, too
		if o.Endpoint != "" {
			d.BaseEndpoint = &o.Endpoint
		}
	})
	return c
}

// Close waits for the calls under way, and closes the connections.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	if already {
		return nil
	}
	close(c.closing)
	c.calls.Wait()
	c.http.CloseIdleConnections()
	return nil
}

var errClosed = errors.New("the coordinator is closed")

// begin counts a call in, unless there is something against it.
func (c *Coordinator) begin(ctx context.Context, check error) error {
	if check != nil {
		return check
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("table %s: %w: %w", c.table, errClosed, siltstone.ErrUnavailable)
	}
	c.calls.Add(1)
	return nil
}

var _ coordinator.Coordinator = (*Coordinator)(nil)
