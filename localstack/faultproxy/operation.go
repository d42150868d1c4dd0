package faultproxy

import (
	"net/http"
	"strings"
)

// Operation is the name of the call that a request is, as AWS names it:
// "PutObject", "UploadPart", "PutItem", "Query". Buckets are the first part of
// the path. Both versions of listing are "ListObjects"; what is not known is
// its method.
func Operation(r *http.Request) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndexByte(target, '.')+1:]
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case bucket == "":
		return onService(r)
	case key == "":
		return onBucket(r)
	}
	return onObject(r)
}

func onService(r *http.Request) string {
	if r.Method == http.MethodGet {
		return "ListBuckets"
	}
	return r.Method
}

func onBucket(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && query.Has("delete"):
		return "DeleteObjects"
	case r.Method == http.MethodGet && query.Has("location"):
		return "GetBucketLocation"
	case r.Method == http.MethodGet && query.Has("uploads"):
		return "ListMultipartUploads"
	case r.Method == http.MethodGet:
		return "ListObjects"
	case r.Method == http.MethodHead:
		return "HeadBucket"
	case r.Method == http.MethodPut:
		return "CreateBucket"
	}
	return r.Method
}

func onObject(r *http.Request) string {
	query := r.URL.Query()
	upload := query.Has("uploadId")
	switch {
	case r.Method == http.MethodPut && upload:
		return "UploadPart"
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return "CopyObject"
	case r.Method == http.MethodPut:
		return "PutObject"
	case r.Method == http.MethodGet && upload:
		return "ListParts"
	case r.Method == http.MethodGet:
		return "GetObject"
	case r.Method == http.MethodHead:
		return "HeadObject"
	case r.Method == http.MethodDelete && upload:
		return "AbortMultipartUpload"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	case r.Method == http.MethodPost && query.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && upload:
		return "CompleteMultipartUpload"
	}
	return r.Method
}
