package gateway

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// notYetTypes are those of the contract that no reply has yet.
var notYetTypes = []string{"text/event-stream", typeBatches}

// accepted is one range of an Accept or Accept-Encoding header.
type accepted struct {
	name    string
	quality float64
}

// acceptedOf reads such a header. What cannot be read is as if it were not there.
func acceptedOf(values []string) []accepted {
	var all []accepted
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			name, params, err := mime.ParseMediaType(one)
			if err != nil {
				continue
			}
			a := accepted{name, 1}
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
				a.quality = q
			}
			all = append(all, a)
		}
	}
	return all
}

// qualityOf is how much something is wanted: the nearest range that has it counts.
func qualityOf(all []accepted, name string) float64 {
	main, _, _ := strings.Cut(name, "/")
	quality, nearest := 0.0, 0
	for _, a := range all {
		near := 0
		switch a.name {
		case name:
			near = 3
		case main + "/*":
			near = 2
		case "*/*", "*":
			near = 1
		}
		if near > nearest {
			quality, nearest = a.quality, near
		}
	}
	return quality
}

// negotiate is the type of the reply, of those on offer, that is wanted most;
// the first where the request does not say.
func negotiate(r *http.Request, offers ...string) (string, error) {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return offers[0], nil
	}
	all := acceptedOf(values)
	best, most := "", 0.0
	for _, o := range offers {
		if q := qualityOf(all, o); q > most {
			best, most = o, q
		}
	}
	if best != "" {
		return best, nil
	}
	for _, t := range notYetTypes {
		if qualityOf(all, t) > 0 {
			return "", fmt.Errorf("%w: replies of type %s", errNotImplemented, t)
		}
	}
	return "", fmt.Errorf("%w: the reply is %s, and Accept is %q", errNotAcceptable, strings.Join(offers, " or "), strings.Join(values, ", "))
}

// wantsGzip says whether a reply may be compressed.
func wantsGzip(r *http.Request) bool {
	return qualityOf(acceptedOf(r.Header.Values("Accept-Encoding")), "gzip") > 0
}

// plainBytes is up to which size a reply is not worth compressing.
const plainBytes = 1 << 10

// writeBody writes a reply of several pieces, compressed where that is asked for.
func writeBody(w http.ResponseWriter, r *http.Request, pieces ...[]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	out, end := io.Writer(w), func() error { return nil }
	if size > plainBytes && wantsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		out, end = z, z.Close
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	for _, p := range pieces {
		if _, err := out.Write(p); err != nil {
			return // the client has gone
		}
	}
	_ = end() // or goes now
}
