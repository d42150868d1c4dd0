package dynamo

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// ErrNoTable is that the table does not exist, or not yet.
var ErrNoTable = errors.New("no such table: run `siltstone cluster init`")

// result is what a request came to. All but lost say surely whether it landed.
type result string

const (
	answered     result = "answered"     // done, or its condition failed
	throttled    result = "throttled"    // did not land; later
	unauthorized result = "unauthorized" // did not land: credentials, rights, or the clock they are dated by
	refused      result = "refused"      // did not land: there is no sense in trying again
	unreached    result = "unreached"    // did not land: it was never sent
	lost         result = "lost"         // sent, and not answered, or not so that it would say much
)

// unauthorizedCodes are of requests that will do with other credentials or
// rights, or with a clock that is right; true where credentials that are fetched
// anew may do.
var unauthorizedCodes = map[string]bool{
	"AccessDenied":                        false,
	"AccessDeniedException":               false,
	"ExpiredToken":                        true,
	"ExpiredTokenException":               true,
	"IncompleteSignatureException":        false,
	"InvalidClientTokenId":                true,
	"InvalidSignatureException":           false,
	"MissingAuthenticationTokenException": false,
	"NotAuthorized":                       true,
	"RequestExpired":                      false,
	"RequestTimeTooSkewed":                false,
	"SignatureDoesNotMatch":               false,
	"UnrecognizedClientException":         true,
}

// classify says what a request came to, of which sent says whether any byte may
// have left.
func classify(err error, sent bool) result {
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed || err == nil {
		return answered
	}
	if !sent {
		return unreached
	}
	api, named := errors.AsType[smithy.APIError](err)
	reply, replied := errors.AsType[*smithyhttp.ResponseError](err)
	if !named || !replied {
		return lost
	}
	code := api.ErrorCode()
	// The SDK counts it among these; it is that an account has too many tables.
	_, limited := errors.AsType[*types.LimitExceededException](err)
	if _, ok := retry.DefaultThrottleErrorCodes[code]; ok && !limited {
		return throttled
	}
	if _, ok := unauthorizedCodes[code]; ok {
		return unauthorized
	}
	// A refusal that DynamoDB has a name for. One that something in between
	// made up, or an error of the server, says nothing of what became of it.
	if s := reply.HTTPStatusCode(); s >= 500 || s == http.StatusRequestTimeout || code == unnamed || api.ErrorFault() == smithy.FaultServer {
		return lost
	}
	return refused
}

// unnamed is the SDK's code for a reply that has none.
const unnamed = "UnknownError"

// failure is the error of a request that is given up.
func (c *Coordinator) failure(r request, result result, err error) error {
	outcome := siltstone.ErrUnavailable
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	switch {
	case result == lost && r.write:
		outcome = coordinator.ErrUnknown
	case missing:
		outcome = ErrNoTable
	case result == refused:
		return fmt.Errorf("table %s: %w", c.table, err)
	}
	return fmt.Errorf("table %s: %w: %s: %w", c.table, outcome, result, err)
}

// renewEvery is how long credentials are kept at the least: whoever issues them
// is not to be asked with each request that fails.
const renewEvery = 5 * time.Second

// renewals is when credentials were last thrown away.
type renewals struct {
	mu   sync.Mutex
	last time.Time
}

func (r *renewals) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && time.Since(r.last) < renewEvery {
		return false
	}
	r.last = time.Now()
	return true
}

// renewCredentials has the next request fetch credentials anew, if an error
// says that these have expired, or were taken back before their time.
func (c *Coordinator) renewCredentials(err error) {
	api, named := errors.AsType[smithy.APIError](err)
	if c.credentials != nil && named && unauthorizedCodes[api.ErrorCode()] && c.renewed.due() {
		c.credentials.Invalidate()
	}
}

// failedOn is the item that a condition failed on, if it did, and there is one.
func failedOn(err error) item {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item
	}
	return nil
}
