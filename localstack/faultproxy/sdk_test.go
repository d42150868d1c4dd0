package faultproxy_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/siltstone-io/siltstone/localstack/faultproxy"
)

// TestSDK: AWS's own SDK finds in each error what the store would have said.
func TestSDK(t *testing.T) {
	p, err := faultproxy.New(faultproxy.Options{Upstream: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	cfg := aws.Config{
		Region: "us-east-1", BaseEndpoint: &front.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	}
	bucket := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	table := dynamodb.NewFromConfig(cfg)
	put := func() error {
		_, err := bucket.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader("silt")})
		return err
	}
	item := func() error {
		_, err := table.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: map[string]types.AttributeValue{}})
		return err
	}
	for _, tt := range []struct {
		name string
		err  *faultproxy.Error
		call func() error
	}{
		{"S3", faultproxy.SlowDown, put},
		{"S3", faultproxy.ExpiredToken, put},
		{"S3", faultproxy.TimeTooSkewed, put},
		{"S3", faultproxy.AccessDenied, put},
		{"S3", faultproxy.InternalError, put},
		{"DynamoDB", faultproxy.Throttled, item},
		{"DynamoDB", faultproxy.TokenExpired, item},
		{"DynamoDB", faultproxy.InternalServer, item},
	} {
		t.Run(tt.name+" "+tt.err.Code, func(t *testing.T) {
			if err := p.Set(faultproxy.Fault{Action: faultproxy.Answer, Error: tt.err}); err != nil {
				t.Fatal(err)
			}
			err := tt.call()
			api, isAPI := errors.AsType[smithy.APIError](err)
			status, isHTTP := errors.AsType[interface {
				error
				HTTPStatusCode() int
			}](err)
			if !isAPI || !isHTTP || api.ErrorCode() != tt.err.Code || status.HTTPStatusCode() != tt.err.Status {
				t.Errorf("%v, want %+v", err, *tt.err)
			}
		})
	}
	if err := p.Set(faultproxy.Fault{Action: faultproxy.Answer, Error: faultproxy.Throttled}); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*types.ProvisionedThroughputExceededException](item()); !ok {
		t.Error("the SDK has a type for it, and does not find it")
	}
}
