package open

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// Schemes of URLs.
const (
	schemeS3    = "s3"
	schemeMinIO = "minio"
	schemeFile  = "file"
)

// Location is what a URL says.
type Location struct {
	Scheme         string
	Bucket, Prefix string
	Region         string
	PartBytes      int64
	Endpoint       string // s3
	PathStyle      *bool  // s3; nil if it does not say
	Addr           string // minio: host:port
	TLS            bool   // minio
	Folder         string // file
}

// ErrURL means that a text is not a bucket's URL.
var ErrURL = errors.New("not a bucket's URL")

// Parse reads a URL. What it does not know it refuses.
func Parse(raw string) (*Location, error) {
	l, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	return l, nil
}

func parse(raw string) (*Location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err // without the URL: a password may be in it
		}
		return nil, err
	}
	switch {
	case u.User != nil:
		return nil, errors.New("credentials do not belong into it, they would end in logs; see docs/buckets.md")
	case u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("%q should be like s3://bucket/prefix", raw)
	}
	l := &Location{Scheme: u.Scheme}
	switch u.Scheme {
	case schemeS3:
		err = l.parseS3(u)
	case schemeMinIO:
		err = l.parseMinIO(u)
	case schemeFile:
		err = l.parseFile(u)
	default:
		err = fmt.Errorf("%q begins with none of s3://, minio:// and file://", raw)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Location) parseS3(u *url.URL) error {
	if err := l.setBucket(u.Host, strings.TrimPrefix(u.Path, "/")); err != nil {
		return err
	}
	return parameters(u, map[string]func(string) error{
		"region":     l.setRegion,
		"endpoint":   l.setEndpoint,
		"part-bytes": l.setPartBytes,
		"path-style": func(v string) error {
			style, err := parseBool(v)
			l.PathStyle = &style
			return err
		},
	})
}

func (l *Location) parseMinIO(u *url.URL) error {
	if u.Hostname() == "" {
		return errors.New("the address of the server is missing: minio://host:port/bucket")
	}
	l.Addr = u.Host
	name, prefix, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if err := l.setBucket(name, prefix); err != nil {
		return err
	}
	return parameters(u, map[string]func(string) error{
		"region":     l.setRegion,
		"part-bytes": l.setPartBytes,
		"tls": func(v string) (err error) {
			l.TLS, err = parseBool(v)
			return err
		},
	})
}

func (l *Location) parseFile(u *url.URL) error {
	if u.Host != "" || !filepath.IsAbs(u.Path) {
		return errors.New("a folder's path is absolute: file:///folder, with three slashes")
	}
	l.Folder = u.Path
	return parameters(u, nil)
}

// bucketName is S3's rule, less what only old buckets have.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// maxPrefixBytes and the slash after it leave bucket.MaxKeyBytes of S3's 1,024.
const maxPrefixBytes = 255

func (l *Location) setBucket(name, prefix string) error {
	if !bucketName.MatchString(name) {
		return fmt.Errorf("%q is no bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens", name)
	}
	prefix = strings.TrimSuffix(prefix, "/")
	if prefix != "" && (len(prefix) > maxPrefixBytes || bucket.CheckKey(prefix) != nil) {
		return fmt.Errorf("%q is no prefix: at most %d letters, digits, and any of -_./", prefix, maxPrefixBytes)
	}
	l.Bucket, l.Prefix = name, prefix
	return nil
}

var regionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

func (l *Location) setRegion(v string) error {
	if !regionName.MatchString(v) {
		return fmt.Errorf("%q is no region", v)
	}
	l.Region = v
	return nil
}

func (l *Location) setEndpoint(v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return errors.New("it should be like https://host:port")
	}
	l.Endpoint = v
	return nil
}

func (l *Location) setPartBytes(v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	const most = 5 << 30 // S3's largest
	if err != nil || n < remote.MinPartBytes || n > most {
		return fmt.Errorf("%q is not a number of bytes from %d to %d", v, remote.MinPartBytes, int64(most))
	}
	l.PartBytes = n
	return nil
}

func parseBool(v string) (bool, error) {
	if v != "true" && v != "false" {
		return false, fmt.Errorf("%q is neither true nor false", v)
	}
	return v == "true", nil
}

// parameters gives each value to its setter.
func parameters(u *url.URL, set map[string]func(string) error) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return err
	}
	known := make([]string, 0, len(set))
	for name := range set {
		known = append(known, name)
	}
	slices.Sort(known)
	for name, values := range query {
		switch {
		case set[name] == nil && len(set) == 0:
			return fmt.Errorf("it takes no parameters, and has %q", name)
		case set[name] == nil:
			return fmt.Errorf("it has no parameter %q, only %s", name, strings.Join(known, ", "))
		case len(values) > 1:
			return fmt.Errorf("%s is given %d times", name, len(values))
		}
		if err := set[name](values[0]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
