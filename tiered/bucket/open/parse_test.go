package open_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone/tiered/bucket/open"
)

func TestParse(t *testing.T) {
	yes, no := true, false
	for raw, want := range map[string]open.Location{
		"s3://records":           {Scheme: "s3", Bucket: "records"},
		"s3://records/":          {Scheme: "s3", Bucket: "records"},
		"s3://records/a/b.c-d_/": {Scheme: "s3", Bucket: "records", Prefix: "a/b.c-d_"},
		"s3://my.records-1/p?region=eu-central-1&endpoint=http%3A%2F%2F127.0.0.1%3A4566&path-style=true&part-bytes=5242880": {
			Scheme: "s3", Bucket: "my.records-1", Prefix: "p", Region: "eu-central-1", Endpoint: "http://127.0.0.1:4566",
			PathStyle: &yes, PartBytes: 5 << 20,
		},
		"s3://records?endpoint=https://s3.example.org&path-style=false": {
			Scheme: "s3", Bucket: "records", Endpoint: "https://s3.example.org", PathStyle: &no,
		},
		"minio://127.0.0.1:9000/records":                {Scheme: "minio", Addr: "127.0.0.1:9000", Bucket: "records"},
		"minio://minio/records/x/y?tls=true":            {Scheme: "minio", Addr: "minio", Bucket: "records", Prefix: "x/y", TLS: true},
		"minio://[::1]:9000/records?region=x&tls=false": {Scheme: "minio", Addr: "[::1]:9000", Bucket: "records", Region: "x"},
		"file:///var/lib/siltstone":                     {Scheme: "file", Folder: "/var/lib/siltstone"},
	} {
		got, err := open.Parse(raw)
		if err != nil {
			t.Errorf("Parse(%s): %v", raw, err)
			continue
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("Parse(%s), -want +got:\n%s", raw, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for raw, says := range map[string]string{
		"":                   "begins with none of",
		"records":            "begins with none of",
		"/var/lib/siltstone": "begins with none of",
		"gs://records":       "begins with none of",
		"s3:records":         "like s3://bucket",
		"s3://":              "no bucket's name",
		"s3:///records":      "no bucket's name",
		"s3://Records":       "no bucket's name",
		"s3://ab":            "no bucket's name",
		"s3://records:80/p":  "no bucket's name",
		"s3://records/a//b":  "no prefix",
		"s3://records/../b":  "no prefix",
		"s3://records/a b":   "no prefix",
		"s3://records/" + strings.Repeat("x/", 150): "no prefix",
		"s3://key:secret@records":                   "credentials do not belong",
		"s3://records#x":                            "like s3://bucket",
		"s3://records?region=":                      "no region",
		"s3://records?region=a b":                   "no region",
		"s3://records?regoin=x":                     `no parameter "regoin", only endpoint, part-bytes, path-style, region`,
		"s3://records?region=a&region=b":            "region is given 2 times",
		"s3://records?endpoint=127.0.0.1:9000":      "endpoint: it should be like",
		"s3://records?path-style=yes":               "path-style: \"yes\" is neither",
		"s3://records?part-bytes=1000":              "part-bytes: ",
		"s3://records?part-bytes=8MiB":              "part-bytes: ",
		"s3://records?tls=true":                     "no parameter \"tls\"",
		"minio://127.0.0.1:9000":                    "no bucket's name",
		"minio:///records":                          "address of the server is missing",
		"minio://h:x/records":                       "invalid port",
		"minio://h/records?endpoint=http://h":       "no parameter \"endpoint\"",
		"file://folder/x":                           "three slashes",
		"file:///x?tls=true":                        "takes no parameters",
	} {
		_, err := open.Parse(raw)
		if !errors.Is(err, open.ErrURL) || !strings.Contains(err.Error(), says) {
			t.Errorf("Parse(%q): %v; want it to say %q", raw, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%q) prints the secret: %v", raw, err)
		}
	}
}
