package words

import "strings"

var marks = strings.NewReplacer("a.m.", "am", "p.m.", "pm", ",", " ", "&", " ", ";", " ")

// Cut cuts a sentence into its words, in lower case. Marks that separate words or end the sentence are left out; "6 a.m." is "6 am".
func Cut(sentence string) []string {
	return strings.Fields(strings.TrimRight(marks.Replace(strings.ToLower(sentence)), " .!\t\r\n"))
}
