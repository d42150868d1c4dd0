package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func TestInitProducerID(t *testing.T) {
	f := start(t)
	c := f.dial()
	empty, some := "", "payments"
	for version := range int16(6) {
		run := func(txn *string, id int64, epoch int16) *kmsg.InitProducerIDResponse {
			t.Helper()
			q := kmsg.NewPtrInitProducerIDRequest()
			q.TransactionalID, q.TransactionTimeoutMillis, q.ProducerID, q.ProducerEpoch = txn, -1, id, epoch
			return ask[*kmsg.InitProducerIDResponse](c, version, q)
		}
		first := run(nil, -1, -1)
		if first.ErrorCode != 0 || first.ProducerEpoch != 0 || first.ProducerID < 0 {
			t.Errorf("v%d: %+v", version, first)
		}
		if again := run(nil, first.ProducerID, 7); again.ErrorCode != 0 || again.ProducerEpoch != 0 || again.ProducerID <= first.ProducerID {
			t.Errorf("v%d, a second time: %+v, after %d", version, again, first.ProducerID)
		}
		wantRefused := func(got *kmsg.InitProducerIDResponse, want string) {
			t.Helper()
			if errorName(got.ErrorCode) != want || got.ProducerID != -1 || got.ProducerEpoch != -1 {
				t.Errorf("v%d: %s, %+v; want %s", version, errorName(got.ErrorCode), got, want)
			}
		}
		wantRefused(run(&some, -1, -1), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
		wantRefused(run(&empty, -1, -1), "INVALID_REQUEST")
		if version >= 3 {
			wantRefused(run(nil, 5, -1), "INVALID_REQUEST")
			wantRefused(run(nil, -1, 5), "INVALID_REQUEST")
		}
		for err, want := range map[error]string{
			fmt.Errorf("coordinator: %w", siltstone.ErrUnavailable): "COORDINATOR_LOAD_IN_PROGRESS",
			context.DeadlineExceeded:                                "COORDINATOR_LOAD_IN_PROGRESS",
			errors.New("what nobody thought of"):                    "UNKNOWN_SERVER_ERROR",
		} {
			f.admin.failWith(err)
			wantRefused(run(nil, -1, -1), want)
		}
		f.admin.failWith(nil)
	}
}
