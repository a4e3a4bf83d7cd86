package policy

// Notice is what the owner of a model is told through the outbox.
type Notice string

// The notices; NoticeNone tells nothing.
const (
	NoticeNone      Notice = ""
	NoticeDisabled  Notice = "disabled"  // a final failure disabled the model
	NoticeRecovered Notice = "recovered" // the first success after a final failure
)
