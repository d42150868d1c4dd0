package kafka

import (
	"reflect"
	"runtime"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

// lists visits every list that a message can have, however deep, with a
// message in which that list alone has n elements, as small as can be, and
// those around it have one. Where the version has tags, each has an unknown
// one, which is what costs most.
func lists(newMessage func() kmsg.Request, n int, visit func(path string, q kmsg.Request)) {
	var walk func(path []int, name string)
	walk = func(path []int, name string) {
		// Build the message down to the struct at path.
		q := newMessage()
		v := reflect.ValueOf(q).Elem()
		for _, i := range path {
			v = v.Field(i)
			if v.Kind() == reflect.Slice {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				v = v.Index(0)
			}
		}
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case field.Name == "UnknownTags":
			case field.Type.Kind() == reflect.Struct:
				walk(append(slices.Clone(path), i), name+"."+field.Name)
			case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() != reflect.Uint8:
				many := reflect.MakeSlice(field.Type, n, n)
				for j := range n {
					tag(many.Index(j))
				}
				v.Field(i).Set(many)
				visit(name+"."+field.Name, q)
				v.Field(i).Set(reflect.Zero(field.Type))
				walk(append(slices.Clone(path), i), name+"."+field.Name)
			}
		}
	}
	walk(nil, "")
	// Tags and nothing else.
	q := newMessage()
	field := reflect.ValueOf(q).Elem().FieldByName("UnknownTags")
	if !field.IsValid() {
		return
	}
	tags := field.Addr().Interface().(*kmsg.Tags)
	for i := range n {
		tags.Set(uint32(100+i), nil)
	}
	visit("tags", q)
}

// costly visits more requests that cost much for their size. Those of lists name
// nothing that is there, and one thing again and again; an answer has it once.
func costly(key kmsg.Key, n int, visit func(path string, q kmsg.Request)) {
	names, numbers := make([]string, n), make([]int32, n)
	for i := range n {
		names[i], numbers[i] = string([]byte{byte(i), byte(i >> 8)}), int32(i)
	}
	switch key {
	case kmsg.FindCoordinator:
		visit("distinct keys", &kmsg.FindCoordinatorRequest{CoordinatorKeys: names})
		visit("keys of share groups", &kmsg.FindCoordinatorRequest{CoordinatorKeys: names, CoordinatorType: 2})
	case kmsg.DescribeGroups:
		visit("distinct groups", &kmsg.DescribeGroupsRequest{Groups: names})
	case kmsg.DeleteGroups:
		visit("distinct groups", &kmsg.DeleteGroupsRequest{Groups: names})
	case kmsg.JoinGroup:
		q := kmsg.NewPtrJoinGroupRequest()
		q.Protocols = make([]kmsg.JoinGroupRequestProtocol, n)
		visit("protocols without tags", q)
	case kmsg.SyncGroup:
		q := kmsg.NewPtrSyncGroupRequest()
		q.ProtocolType, q.Protocol = kmsg.StringPtr(""), kmsg.StringPtr("")
		q.GroupAssignment = make([]kmsg.SyncGroupRequestGroupAssignment, n)
		for i := range q.GroupAssignment {
			q.GroupAssignment[i].MemberID = names[i]
		}
		visit("distinct members", q)
	case kmsg.OffsetCommit:
		q := commitOf("g", "t", siltstone.TopicID{})
		q.Topics[0].Partitions = make([]kmsg.OffsetCommitRequestTopicPartition, n)
		for i := range numbers {
			q.Topics[0].Partitions[i].Partition = numbers[i]
		}
		visit("distinct partitions", q)
	case kmsg.OffsetFetch:
		visit("distinct partitions", fetchOffsetsOf("g", "t", siltstone.TopicID{}, numbers...))
		q := &kmsg.OffsetFetchRequest{Groups: make([]kmsg.OffsetFetchRequestGroup, n)}
		for i := range q.Groups {
			q.Groups[i].Group = names[i]
		}
		visit("distinct groups", q)
	case kmsg.OffsetDelete:
		visit("distinct partitions", deleteOffsetsOf("g", "t", numbers...))
	case kmsg.DeleteRecords:
		visit("distinct partitions", &kmsg.DeleteRecordsRequest{TimeoutMillis: 1000, Topics: []kmsg.DeleteRecordsRequestTopic{deleteBefore("t", make([]int64, n)...)}})
	case kmsg.DescribeLogDirs:
		visit("distinct partitions", &kmsg.DescribeLogDirsRequest{Topics: []kmsg.DescribeLogDirsRequestTopic{{Topic: "t", Partitions: numbers}}})
	case kmsg.DescribeProducers:
		visit("distinct partitions", &kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: "t", Partitions: numbers}}})
	case kmsg.ElectLeaders:
		visit("distinct partitions", &kmsg.ElectLeadersRequest{Topics: []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: numbers}}})
	}
}

func tag(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	if f := v.FieldByName("UnknownTags"); f.IsValid() {
		f.Addr().Interface().(*kmsg.Tags).Set(100, nil)
	}
}

// allocated is how many bytes f allocates, freed or not.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}
