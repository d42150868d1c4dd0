package minio

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

const crc32cHeader = "x-amz-checksum-crc32c"

// Put implements remote.Objects. The payload is not in the signature, which
// would need its SHA-256; its CRC32C is, in a header.
func (c *client) Put(ctx context.Context, key string, p remote.Payload) error {
	o := minio.PutObjectOptions{DisableContentSha256: true, UserMetadata: map[string]string{crc32cHeader: p.CRC32C}}
	o.SetMatchETagExcept("*")
	_, err := c.api.PutObject(ctx, c.bucket, key, p.Reader, p.Length, "", "", o)
	return c.explain(err)
}

// Get implements remote.Objects.
func (c *client) Get(ctx context.Context, key, byteRange string) (remote.Content, error) {
	var o minio.GetObjectOptions
	if byteRange != "" {
		o.Set("Range", byteRange)
	}
	body, info, header, err := c.api.GetObject(ctx, c.bucket, key, o)
	if err != nil {
		return remote.Content{}, c.explain(err)
	}
	return remote.Content{Body: body, Length: info.Size, Range: header.Get("Content-Range")}, nil
}

// Head implements remote.Objects.
func (c *client) Head(ctx context.Context, key string) (int64, error) {
	info, err := c.api.StatObject(ctx, c.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return 0, c.explain(err)
	}
	return info.Size, nil
}

// Delete implements remote.Objects.
func (c *client) Delete(ctx context.Context, keys []string) error {
	objects := make(chan minio.ObjectInfo, len(keys))
	for _, key := range keys {
		objects <- minio.ObjectInfo{Key: key}
	}
	close(objects)
	answered := 0
	var first error
	for result := range c.api.RemoveObjectsWithResult(ctx, c.bucket, objects, minio.RemoveObjectsOptions{}) {
		answered++
		if first == nil && result.Err != nil {
			first = c.kept(result)
		}
	}
	if first == nil && answered != len(keys) {
		return fmt.Errorf("%d keys deleted of %d: %w", answered, len(keys), remote.ErrGarbled)
	}
	return first
}

// kept explains the result of one key, or of the request.
func (c *client) kept(result minio.RemoveObjectResult) error {
	var of minio.ErrorResponse
	if !errors.As(result.Err, &of) || of.StatusCode != 0 {
		return c.explain(result.Err) // what has a status is of the request
	}
	if of.Code == minio.NoSuchKey {
		return nil
	}
	answer := &remote.Answer{Status: http.StatusOK, Code: of.Code, Message: of.Message}
	return fmt.Errorf("%s %w: %w", result.ObjectName, remote.ErrKept, answer)
}

// MakeBucket makes it.
func (c *client) MakeBucket(ctx context.Context) error {
	return c.explain(c.api.MakeBucket(ctx, c.bucket, minio.MakeBucketOptions{Region: c.region}))
}
