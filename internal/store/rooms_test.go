package store

// These are what the tests of package store_test need of this one.
const (
	SettingLayout = settingLayout
	SettledAfter  = settledAfter
)

// MendRate is how fast models are mended.
var MendRate = mendRate
