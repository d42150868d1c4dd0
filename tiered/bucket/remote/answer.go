package remote

import (
	"fmt"
	"net/http"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Answer is a store's answer that is no success. It is one of the port's
// errors, bucket.ErrRefused or siltstone.ErrUnavailable; see Is.
type Answer struct {
	Status        int    // of HTTP
	Code, Message string // of the body; empty if there was none
}

func (a *Answer) Error() string {
	text := fmt.Sprintf("the store answered %d %s", a.Status, a.Code)
	if a.Code == "" {
		text += http.StatusText(a.Status)
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// Is makes errors.Is work with what the answer means.
func (a *Answer) Is(target error) bool { return target == a.outcome() }

// Expired says whether other credentials may be taken: then they are to be fetched anew.
func (a *Answer) Expired() bool {
	switch a.Code {
	case "ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired":
		return true
	}
	return false
}

// outcome trusts the code more than the status: some answers have the status
// of a success, and an object is missing only if the store says so, for a 404
// may also be a proxy's, or of a bucket.
func (a *Answer) outcome() error {
	if a.Expired() {
		return siltstone.ErrUnavailable
	}
	switch a.Code {
	case "NoSuchKey":
		return bucket.ErrNotFound
	case "PreconditionFailed":
		return bucket.ErrExists
	case "InvalidRange":
		return bucket.ErrRange
	case "RequestTimeTooSkewed", "RequestExpired", // until a clock is set
		"RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentChecksumMismatch", // the way there
		"NoSuchUpload", "InvalidPart", // somebody aborted it: it is begun anew
		"ConditionalRequestConflict", "OperationAborted", // another's request is under way
		"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TemporaryRedirect":
		return siltstone.ErrUnavailable
	case "AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidAccessKeyId", "SignatureDoesNotMatch",
		"NoSuchBucket", "BucketAlreadyExists", "InvalidBucketName", "TooManyBuckets", "MethodNotAllowed", "NotImplemented":
		return bucket.ErrRefused
	}
	switch a.Status {
	case http.StatusPreconditionFailed:
		return bucket.ErrExists
	case http.StatusRequestedRangeNotSatisfiable:
		return bucket.ErrRange
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusConflict, http.StatusTemporaryRedirect:
		return siltstone.ErrUnavailable
	case http.StatusNotImplemented:
		return bucket.ErrRefused
	}
	if a.Status >= 300 && a.Status < 500 {
		return bucket.ErrRefused
	}
	return siltstone.ErrUnavailable
}
