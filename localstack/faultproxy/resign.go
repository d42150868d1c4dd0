package faultproxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// stripConditions makes an unconditional request of a conditional one. The
// conditions are among the headers that are signed, so it signs again.
func stripConditions(r *http.Request, secret string) error {
	r.Header.Del("If-None-Match")
	r.Header.Del("If-Match")
	r.Header.Del("Connection") // it is not for the store, and would be signed
	payload := r.Header.Get("X-Amz-Content-Sha256")
	if strings.HasPrefix(payload, "STREAMING-AWS4-") { // each chunk is signed, with the request's signature
		return fmt.Errorf("a payload of the kind %s cannot be signed anew", payload)
	}
	// AWS4-HMAC-SHA256 Credential=KEY/20261202/us-east-1/s3/aws4_request, ...
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	scope := strings.Split(credential, "/")
	if len(scope) != 5 {
		return fmt.Errorf("the credential %q has not five parts", credential)
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	keys := aws.Credentials{AccessKeyID: scope[0], SecretAccessKey: secret, SessionToken: r.Header.Get("X-Amz-Security-Token")}
	asS3Does := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }
	return v4.NewSigner(asS3Does).SignHTTP(r.Context(), keys, r, payload, scope[3], scope[2], at)
}
