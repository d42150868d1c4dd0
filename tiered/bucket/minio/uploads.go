package minio

import (
	"context"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// Create implements remote.Uploads.
func (c *client) Create(ctx context.Context, key string) (string, error) {
	o := minio.PutObjectOptions{UserMetadata: map[string]string{"x-amz-checksum-algorithm": "CRC32C"}}
	id, err := c.api.NewMultipartUpload(ctx, c.bucket, key, o)
	return id, c.explain(err)
}

// Part implements remote.Uploads.
func (c *client) Part(ctx context.Context, u remote.Upload, number int, p remote.Payload) (string, error) {
	header := http.Header{}
	header.Set(crc32cHeader, p.CRC32C)
	o := minio.PutObjectPartOptions{DisableContentSha256: true, CustomHeader: header}
	part, err := c.api.PutObjectPart(ctx, c.bucket, u.Key, u.ID, number, p.Reader, p.Length, o)
	return part.ETag, c.explain(err)
}

// Complete implements remote.Uploads.
func (c *client) Complete(ctx context.Context, u remote.Upload, parts []remote.Part) error {
	completed := make([]minio.CompletePart, len(parts))
	for i := range parts {
		completed[i] = minio.CompletePart{PartNumber: parts[i].Number, ETag: parts[i].ETag, ChecksumCRC32C: parts[i].CRC32C}
	}
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*")
	_, err := c.api.CompleteMultipartUpload(ctx, c.bucket, u.Key, u.ID, completed, o)
	return c.explain(err)
}

// Abort implements remote.Uploads.
func (c *client) Abort(ctx context.Context, u remote.Upload) error {
	return c.explain(c.api.AbortMultipartUpload(ctx, c.bucket, u.Key, u.ID))
}

// Pending implements remote.Uploads.
func (c *client) Pending(ctx context.Context, after remote.Upload) (found []remote.Upload, more bool, err error) {
	out, err := c.api.ListMultipartUploads(ctx, c.bucket, "", after.Key, after.ID, "", remote.PageKeys)
	if err != nil {
		return nil, false, c.explain(err)
	}
	for _, u := range out.Uploads {
		found = append(found, remote.Upload{Key: u.Key, ID: u.UploadID, Started: u.Initiated})
	}
	return found, out.IsTruncated, nil
}
