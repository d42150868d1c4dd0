package minio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// List implements remote.Objects. MinIO's client lists page after page by
// itself, as long as a store says that there are more; onePage ends that where
// a page has fewer than were asked for.
func (c *client) List(ctx context.Context, prefix, after string, limit int) (found []bucket.Info, more bool, err error) {
	o := minio.ListObjectsOptions{Prefix: prefix, StartAfter: after, MaxKeys: limit, Recursive: true}
	for info := range c.api.ListObjectsIter(context.WithValue(ctx, pagesKey{}, new(int)), c.bucket, o) {
		switch {
		case errors.Is(info.Err, errNextPage):
			return found, true, nil
		case info.Err != nil:
			return nil, false, c.explain(info.Err)
		}
		found = append(found, bucket.Info{Key: info.Key, SizeBytes: info.Size})
		if len(found) == limit {
			return found, true, nil
		}
	}
	return found, false, nil
}

// onePage lets one request through for a context that counts pages. It also
// looks whether what comes is a page: the client takes anything for one.
type onePage struct{ inner http.RoundTripper }

type pagesKey struct{}

var errNextPage = errors.New("a page has been read")

func (p onePage) RoundTrip(r *http.Request) (*http.Response, error) {
	pages, listing := r.Context().Value(pagesKey{}).(*int)
	if !listing {
		return p.inner.RoundTrip(r)
	}
	if *pages++; *pages > 1 {
		return nil, errNextPage
	}
	response, err := p.inner.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	body := bufio.NewReader(response.Body)
	const rootAt = 256 // within it is the root element
	if start, _ := body.Peek(rootAt); !bytes.Contains(start, []byte("<ListBucketResult")) {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: not a list", remote.ErrGarbled)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{body, response.Body}
	return response, nil
}
