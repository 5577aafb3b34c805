module exposition-2.42

go 1.26.7

require github.com/prometheus/prometheus v0.42.0

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/grafana/regexp v0.0.0-20221122212121-6b5c0a4cb7fd // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/prometheus/common v0.39.0 // indirect
)
