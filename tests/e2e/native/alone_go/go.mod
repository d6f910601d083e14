module alone

go 1.19
