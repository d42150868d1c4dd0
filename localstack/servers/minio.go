package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// BucketName is of the bucket that a MinIO server has from its start.
const BucketName = "siltstone"

// checkedName is of the bucket that the check writes to.
const checkedName = "checked"

// MinIO is a MinIO server with its data in a folder of dir.
func MinIO(dir, addr string) Server {
	return Server{
		Name: "minio",
		Addr: addr,
		Argv: []string{installed("minio"), "server", "--address", addr, filepath.Join(dir, "minio")},
		Env: []string{
			"MINIO_ROOT_USER=" + AccessKey, "MINIO_ROOT_PASSWORD=" + SecretKey,
			"MINIO_BROWSER=off", // it would listen on a port more, on all addresses
			"MINIO_UPDATE=off",
		},
		Check: func(ctx context.Context) error { return checkMinIO(ctx, "http://"+addr) },
	}
}

// checkMinIO makes the bucket, and sees a conditional write refused.
func checkMinIO(ctx context.Context, url string) error {
	for _, name := range []string{BucketName, checkedName} {
		if status, err := put(ctx, url+"/"+name); err != nil && status != http.StatusConflict { // it is there
			return err
		}
	}
	object := url + "/" + checkedName + "/object"
	// The first may find what an earlier check has left.
	if status, err := put(ctx, object); err != nil && status != http.StatusPreconditionFailed {
		return err
	}
	switch status, err := put(ctx, object); {
	case err == nil:
		return errors.New("a conditional write replaced what was there")
	case status != http.StatusPreconditionFailed:
		return err
	}
	return nil
}

// put makes a bucket, or an empty object if there is none. What is no success is
// an error too.
func put(ctx context.Context, url string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("If-None-Match", "*")
	const payload = "UNSIGNED-PAYLOAD"
	r.Header.Set("X-Amz-Content-Sha256", payload)
	keys := aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey}
	if err := v4.NewSigner().SignHTTP(ctx, keys, r, payload, "s3", Region, time.Now()); err != nil {
		return 0, err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxReplyBytes))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("PUT %s: %s: %.200s", url, reply.Status, body)
	}
	return reply.StatusCode, err
}
