module judges

go 1.26
