package s3

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// Create implements remote.Uploads.
func (c *client) Create(ctx context.Context, key string) (string, error) {
	out, err := c.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &c.bucket, Key: &key, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
	})
	if err != nil {
		return "", c.explain(err)
	}
	return aws.ToString(out.UploadId), nil
}

// Part implements remote.Uploads.
func (c *client) Part(ctx context.Context, u remote.Upload, number int, p remote.Payload) (string, error) {
	out, err := c.api.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &c.bucket, Key: &u.Key, UploadId: &u.ID, PartNumber: aws.Int32(int32(number)),
		Body: p.Reader, ContentLength: &p.Length, ChecksumCRC32C: &p.CRC32C,
	}, unsigned)
	if err != nil {
		return "", c.explain(err)
	}
	return aws.ToString(out.ETag), nil
}

// Complete implements remote.Uploads.
func (c *client) Complete(ctx context.Context, u remote.Upload, parts []remote.Part) error {
	completed := make([]types.CompletedPart, len(parts))
	for i := range parts {
		completed[i] = types.CompletedPart{
			PartNumber: aws.Int32(int32(parts[i].Number)), ETag: &parts[i].ETag, ChecksumCRC32C: &parts[i].CRC32C,
		}
	}
	out, err := c.api.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &c.bucket, Key: &u.Key, UploadId: &u.ID, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: completed},
	})
	if err == nil && out.ETag == nil {
		return fmt.Errorf("%w: completed without an ETag", remote.ErrGarbled)
	}
	return c.explain(err)
}

// Abort implements remote.Uploads.
func (c *client) Abort(ctx context.Context, u remote.Upload) error {
	_, err := c.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &c.bucket, Key: &u.Key, UploadId: &u.ID})
	return c.explain(err)
}

// Pending implements remote.Uploads.
func (c *client) Pending(ctx context.Context, after remote.Upload) (found []remote.Upload, more bool, err error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &c.bucket}
	if after.Key != "" {
		in.KeyMarker, in.UploadIdMarker = &after.Key, &after.ID
	}
	out, err := c.api.ListMultipartUploads(ctx, in)
	if err != nil {
		return nil, false, c.explain(err)
	}
	for i := range out.Uploads {
		u := &out.Uploads[i]
		found = append(found, remote.Upload{Key: aws.ToString(u.Key), ID: aws.ToString(u.UploadId), Started: aws.ToTime(u.Initiated)})
	}
	return found, aws.ToBool(out.IsTruncated), nil
}
