package faultproxy

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
)

// s3Error is S3's body of an error (Amazon S3 API Reference, "Error responses").
type s3Error struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string
	RequestID string `xml:"RequestId"`
}

// dynamoError is DynamoDB's (Amazon DynamoDB Developer Guide, "Error handling").
type dynamoError struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

const (
	message   = "the fault proxy says so"
	requestID = "FAULTPROXY"
)

// write answers a request with the error.
func (e *Error) write(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Header.Get("X-Amz-Target") != "" {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Requestid", requestID)
		body, _ = json.Marshal(dynamoError{"com.amazonaws.dynamodb.v20120810#" + e.Code, message})
	} else {
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("X-Amz-Request-Id", requestID)
		body, _ = xml.Marshal(s3Error{Code: e.Code, Message: message, Resource: r.URL.Path, RequestID: requestID})
		body = append([]byte(xml.Header), body...)
	}
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
