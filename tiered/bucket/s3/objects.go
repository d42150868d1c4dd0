package s3

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// unsigned leaves the payload out of the signature, which would need its
// SHA-256. Its CRC32C is in a header that is signed.
func unsigned(o *s3.Options) {
	o.APIOptions = append(slices.Clip(o.APIOptions), v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// Put implements remote.Objects.
func (c *client) Put(ctx context.Context, key string, p remote.Payload) error {
	_, err := c.api.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &c.bucket, Key: &key, IfNoneMatch: aws.String("*"),
		Body: p.Reader, ContentLength: &p.Length, ChecksumCRC32C: &p.CRC32C,
	}, unsigned)
	return c.explain(err)
}

// Get implements remote.Objects.
func (c *client) Get(ctx context.Context, key, byteRange string) (remote.Content, error) {
	in := &s3.GetObjectInput{Bucket: &c.bucket, Key: &key}
	if byteRange != "" {
		in.Range = &byteRange
	}
	out, err := c.api.GetObject(ctx, in)
	if err != nil {
		return remote.Content{}, c.explain(err)
	}
	content := remote.Content{Body: out.Body, Length: -1, Range: aws.ToString(out.ContentRange)}
	if out.ContentLength != nil {
		content.Length = *out.ContentLength
	}
	return content, nil
}

// Head implements remote.Objects.
func (c *client) Head(ctx context.Context, key string) (int64, error) {
	out, err := c.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return 0, c.explain(err)
	}
	return aws.ToInt64(out.ContentLength), nil
}

// List implements remote.Objects.
func (c *client) List(ctx context.Context, prefix, after string, limit int) (found []bucket.Info, more bool, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &c.bucket, Prefix: &prefix, MaxKeys: aws.Int32(int32(limit))}
	if after != "" {
		in.StartAfter = &after
	}
	out, err := c.api.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, false, c.explain(err)
	}
	for i := range out.Contents {
		found = append(found, bucket.Info{Key: aws.ToString(out.Contents[i].Key), SizeBytes: aws.ToInt64(out.Contents[i].Size)})
	}
	return found, aws.ToBool(out.IsTruncated), nil
}

// Delete implements remote.Objects.
func (c *client) Delete(ctx context.Context, keys []string) error {
	ids := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		ids[i].Key = &keys[i]
	}
	out, err := c.api.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &c.bucket, Delete: &types.Delete{Objects: ids}}, contentMD5)
	if err != nil {
		return c.explain(err)
	}
	for i := range out.Errors {
		e := &out.Errors[i]
		if code := aws.ToString(e.Code); code != "NoSuchKey" {
			answer := &remote.Answer{Status: 200, Code: code, Message: aws.ToString(e.Message)}
			return fmt.Errorf("%s %w: %w", aws.ToString(e.Key), remote.ErrKept, answer)
		}
	}
	if n := len(out.Deleted) + len(out.Errors); n != len(keys) { // an error's body may come with status 200
		return fmt.Errorf("%d keys deleted of %d: %w", n, len(keys), remote.ErrGarbled)
	}
	return nil
}

// contentMD5 has the request's MD5 in its header, which older stores and
// S3-compatible ones want, not a CRC32.
func contentMD5(o *s3.Options) {
	o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
		if _, err := s.Finalize.Remove("AWSChecksum:ComputeInputPayloadChecksum"); err != nil {
			return err
		}
		return smithyhttp.AddContentChecksumMiddleware(s)
	})
}

// MakeBucket makes it in the client's region. S3 wants to hear no region where
// that is its first.
func (c *client) MakeBucket(ctx context.Context) error {
	in := &s3.CreateBucketInput{Bucket: &c.bucket}
	if region := c.api.Options().Region; region != "us-east-1" {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	_, err := c.api.CreateBucket(ctx, in)
	return c.explain(err)
}
