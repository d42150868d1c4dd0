package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Error is the body of every answer that is not a success: error_code and
// message are those of the REST proxies of Kafka, v2 and v3; the rest is ours.
type Error struct {
	Number    int            `json:"error_code"` // the HTTP status, or five digits that begin with it
	Message   string         `json:"message"`
	Code      string         `json:"code"`
	Retriable bool           `json:"retriable"`
	Details   map[string]any `json:"details"`
}

// shortened is text of a request as an answer quotes it: the answer is small,
// whatever the request is.
func shortened(text []byte) string {
	const most = 100
	if len(text) <= most {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:most]), "") + "…"
}

func writeError(w http.ResponseWriter, status int, e Error) {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, e)
}

// writeJSON answers with a small body.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encoding an answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
