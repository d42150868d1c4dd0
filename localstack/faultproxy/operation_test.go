package faultproxy

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOperation(t *testing.T) {
	for _, tt := range []struct{ request, header, want string }{
		{"POST /", "X-Amz-Target: DynamoDB_20120810.PutItem", "PutItem"},
		{"POST /", "X-Amz-Target: DynamoDB_20120810.Query", "Query"},
		{"GET /", "", "ListBuckets"},
		{"PUT /b", "", "CreateBucket"},
		{"PUT /b/", "", "CreateBucket"},
		{"HEAD /b", "", "HeadBucket"},
		{"GET /b/?list-type=2&prefix=p%2F", "", "ListObjects"},
		{"GET /b?prefix=p", "", "ListObjects"},
		{"GET /b?location", "", "GetBucketLocation"},
		{"GET /b?uploads", "", "ListMultipartUploads"},
		{"POST /b?delete", "", "DeleteObjects"},
		{"PUT /b/k", "", "PutObject"},
		{"PUT /b/folder/k", "", "PutObject"},
		{"PUT /b/k", "X-Amz-Copy-Source: /b/l", "CopyObject"},
		{"PUT /b/k?partNumber=1&uploadId=u", "", "UploadPart"},
		{"GET /b/k", "Range: bytes=0-9", "GetObject"},
		{"GET /b/k?uploadId=u", "", "ListParts"},
		{"HEAD /b/k", "", "HeadObject"},
		{"DELETE /b/k", "", "DeleteObject"},
		{"DELETE /b/k?uploadId=u", "", "AbortMultipartUpload"},
		{"POST /b/k?uploads", "", "CreateMultipartUpload"},
		{"POST /b/k?uploadId=u", "", "CompleteMultipartUpload"},
		{"PATCH /b/k", "", "PATCH"},
		{"POST /", "", "POST"},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if name, value, ok := strings.Cut(tt.header, ": "); ok {
			r.Header.Set(name, value)
		}
		if got := Operation(r); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.request, got, tt.want)
		}
	}
}
